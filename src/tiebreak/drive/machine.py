"""Where training happens, and how: on this machine or on a Ray cluster, on which device, with how many workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak.drive.device import require_device
from tiebreak.drive.jobs import StrategyOption
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.record import Precision, device_label
from tiebreak.study.schema import Study
from tiebreak.system import cores
from tiebreak.text import printable

if TYPE_CHECKING:
    from tiebreak.cluster.ray_pool import RayPool

LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where training happens, and how."""

    device: str = "cpu"
    workers: int | None = None  # None: one per core on the CPU, one on a GPU
    data_dir: Path | None = None
    strategy: StrategyOption = "auto"  # auto: the faster one, measured once per cohort
    precision: Precision = "float32"
    on: str = LOCAL  # this machine; `ray`: the cluster at RAY_ADDRESS, or a new local one; `ray://HOST:PORT`

    def __post_init__(self) -> None:
        """Refuse a precision that the device does not have, and a place that there is not."""
        if self.precision == "tf32" and self.device == "cpu":
            raise TiebreakError("--precision tf32 requires --device cuda")
        if self.on not in (LOCAL, "ray") and not self.on.startswith("ray://"):
            raise TiebreakError(f"--on {printable(self.on)}: use local, ray or ray://HOST:PORT")

    @property
    def device_label(self) -> str:
        """The device and its precision, as records name them."""
        return device_label(self.device, self.precision)

    def processes(self) -> int:
        """How many worker processes this machine gets."""
        if self.workers is not None:
            return self.workers
        return cores() if self.device == "cpu" else 1


@contextmanager
def reached(machine: Machine) -> Iterator[None]:
    """The device is here, or a cluster that has it is connected; TiebreakError otherwise."""
    if machine.on == LOCAL:
        require_device(machine.device)
        yield
        return
    from tiebreak.cluster.ray_connection import connected

    with connected(machine.on, machine.device):
        yield


def check_precision(study: Study, option: Precision) -> None:
    """Refuse --precision bf16 for a study that states another precision, or several."""
    stated = {study.precision_of(arm) or "float32" for arm in study.arms}
    if option == "bf16" and stated - {"float32"} and stated != {"bfloat16"}:
        raise TiebreakError(
            f"--precision bf16 is for all arms, but the study states {' and '.join(sorted(stated))}; leave out"
            " --precision, or remove `precision` from the study"
        )


def ray_pool(plan: Plan, folder: Path, machine: Machine) -> RayPool:
    """The workers of a cluster; one line where Ray is not installed."""
    from tiebreak.cluster.ray_connection import require_ray

    require_ray(machine.on)
    from tiebreak.cluster.ray_pool import RayPool

    return RayPool(plan, folder, machine)

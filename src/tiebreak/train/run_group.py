"""Runs in their initial state, with the task, the data and the network that they need: what every job starts from."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tiebreak import catalog
from tiebreak.data.checksums import load_checksums
from tiebreak.drive.messages import Job
from tiebreak.errors import StopStudyError, TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study import registry
from tiebreak.study.base import RunPrecision
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Split, Task
from tiebreak.train.initialise import initialise
from tiebreak.train.precision import in_dtype, of_run
from tiebreak.train.step import State, initial_state


@dataclass(frozen=True)
class RunGroup:
    """Runs of one cohort that are trained together, with everything they are trained with."""

    runs: list[Run]
    task: Task
    data: Any
    network: nn.Module  # the first run's: all have the same structure
    states: list[State]
    device: torch.device
    precision: RunPrecision | None  # None: float32
    loaded: Mapping[str, Split] = field(default_factory=dict)  # splits that are on the device already

    def split(self, name: str, evaluation: Mapping[str, Scalar]) -> Split:
        """One split of the data on the device. The runs of a cohort have the same task options."""
        if name in self.loaded and not evaluation:
            return self.loaded[name]
        with _stops_the_study():
            tensors = self.task.split(self.data, name, self.runs[0].options, evaluation)
        return {key: in_dtype(values, self.precision).to(self.device) for key, values in tensors.items()}


def make_group(job: Job, runs: Sequence[Run] | None = None) -> RunGroup:
    """The runs of a job (or some of them) in their initial state."""
    runs = list(runs) if runs else [Run.model_validate(content) for content in job.runs]
    first = runs[0]
    task = catalog.find_task(first.task, job.designs_from).with_options(first.options)
    known = registry.TASKS[first.task].options if first.task != registry.OWN_TASK else {}
    reading = tuple((name, value) for name, value in first.options.items() if known[name].of_data)
    with _stops_the_study():
        data = _load(first.task, job.designs_from, first.checksum, reading, first.data, job.data_dir, job.checksums)
    if data.checksum != first.checksum:
        if first.task == registry.OWN_TASK:
            raise StopStudyError(
                f"{job.designs_from}: load: returned other data than when the plan was made; it has to return the same"
                " whenever it is called: seed what it draws"
            )
        raise StopStudyError(
            f"data set {first.data} changed since the plan was made; start again in another --out folder"
        )
    design = catalog.find_design(first.design, job.designs_from, registry.family_of(first.task))
    device = torch.device(job.device)
    if device.type == "cuda":  # the same whatever the strategy; recorded with every run
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = job.precision == "tf32"
    states = []
    for run in reversed(runs):  # the first run's network is the one that stays
        network = design.network(task.shape(data), run.build, stream(run.seed, "init"))
        if run.init is not None:
            initialise(network, run.init, stream(run.seed, "init", run.init))
        network = network.to(device, torch.float64 if run.precision == "float64" else None)
        states.append(initial_state(network, run))
    return RunGroup(runs, task, data, network, states[::-1], device, of_run(first.precision, job.precision))


@contextmanager
def _stops_the_study() -> Iterator[None]:
    """Around reading the data: what is wrong with it is wrong for every run."""
    try:
        yield
    except (TiebreakError, OSError) as error:
        raise StopStudyError(str(error)) from error


@lru_cache(maxsize=1)
def _load(
    task: str,
    designs_from: str | None,
    checksum: str,  # the user's own task may have changed
    reading: tuple[tuple[str, Scalar], ...],
    name: str,
    data_dir: str | None,
    checksums: str | None,
) -> Any:
    if checksums is not None:
        load_checksums(Path(checksums))
    found = catalog.find_task(task, designs_from).with_options(dict(reading))
    return found.load(name, Path(data_dir) if data_dir else None)


def machine_facts() -> dict[str, str]:
    """What the record of a run says about the machine and the versions that it was trained with."""
    return {
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on a GPU or on the CPU."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )

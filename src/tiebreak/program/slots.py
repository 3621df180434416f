"""How many runs of a program there are at a time, and which GPUs each of them sees."""

from __future__ import annotations

import os

from tiebreak.errors import TiebreakError
from tiebreak.study.program_keys import Program
from tiebreak.system import cores, gpu_count
from tiebreak.text import number_of

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Slots:
    """The places of a machine: taken by a run when it starts, given back when it ends."""

    def __init__(self, program: Program, *, workers: int | None, core_count: int, gpus: list[str]) -> None:
        self._program = program
        places = max(1, core_count // program.cores)
        self.devices: list[str] = [""] * places  # of each place: the GPUs that it sees
        if program.gpus:
            self.devices = _shares(program.gpus, gpus)[:places]
        if workers is not None:
            self.devices = self.devices[:workers]
        self._free = list(range(len(self.devices)))[::-1]

    @classmethod
    def of_machine(cls, program: Program, workers: int | None) -> Slots:
        """The places of this machine."""
        return cls(program, workers=workers, core_count=cores(), gpus=visible_gpus())

    def __len__(self) -> int:
        return len(self.devices)

    def take(self) -> int | None:
        """A free place, or None."""
        return self._free.pop() if self._free else None

    def give_back(self, place: int) -> None:
        """The run in this place has ended."""
        self._free.append(place)

    def environment(self, place: int) -> dict[str, str]:
        """What a run in this place finds in its environment, beside what is there anyway."""
        threads = dict.fromkeys(THREADS, str(self._program.cores))
        return {**threads, "CUDA_VISIBLE_DEVICES": self.devices[place], "PYTHONUNBUFFERED": "1"}


def visible_gpus() -> list[str]:
    """The names of the GPUs that we may use, as CUDA_VISIBLE_DEVICES has them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    return [str(number) for number in range(gpu_count())]


def _shares(wanted: float, gpus: list[str]) -> list[str]:
    """The GPUs of each place: several places share a GPU, or one place has several."""
    if not gpus or wanted > len(gpus):
        there = number_of(len(gpus), "GPU") if gpus else "no GPU"
        raise TiebreakError(f"program.gpus: {wanted:g} for each run, but {there} is visible here; ask for fewer")
    if wanted < 1:
        return gpus * int(1 / wanted + 1e-9)
    each = int(wanted)
    return [",".join(gpus[start : start + each]) for start in range(0, len(gpus) - each + 1, each)]

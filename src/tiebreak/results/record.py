"""Records: what a run leaves. Plain frozen dataclasses, no torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tiebreak.results.packing import Arrays

Status = Literal["done", "diverged", "failed"]
Precision = Literal["float32", "tf32", "bf16"]  # of products; tf32 on a GPU only
# One run after the other, the same with each run's steps as CUDA graphs, or all runs of a cohort as one computation.
Strategy = Literal["loop", "captured", "fused"]
EVALUATED_EPOCH = "evaluated_epoch"  # of a run's provenance, with early stopping
PROGRAM_RUNS = "program-runs"  # the folder of the runs of a program, in the results folder
SHOWN_EXAMPLES = "shown-examples"  # the exhibit that says which test examples a run's exhibits were made for


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One epoch of a trajectory: metrics such as `train_loss` and `val_accuracy`, and the clocks in seconds."""

    trajectory: str
    epoch: int
    metrics: Mapping[str, float]
    seconds: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """How a run ended, with its provenance. `diverged` is a result; `failed` can be tried again."""

    identity: str
    trajectory: str
    status: Status
    epoch: int
    reason: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    output: str = ""  # the last lines that a program wrote before it failed

    @property
    def evaluated_epoch(self) -> int:
        """The epoch whose weights were evaluated: the last one, or with early stopping the best on validation."""
        return int(self.provenance.get(EVALUATED_EPOCH, self.epoch))


@dataclass(frozen=True, kw_only=True)
class FinalRecord:
    """One evaluation of a finished run on the test split: metrics, and an outcome per example."""

    identity: str
    evaluation: str
    metrics: Mapping[str, float]
    outcomes: Arrays
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ExhibitRecord:
    """What a report shows of a finished run beyond numbers: small arrays by name."""

    identity: str
    name: str
    arrays: Arrays


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """Where a run's state after an epoch is kept, and the sha256 that its file must have."""

    identity: str
    trajectory: str
    epoch: int
    file: str  # empty: pruned
    sha256: str

    @property
    def pruned(self) -> bool:
        """Whether `tiebreak prune` has removed the file."""
        return not self.file


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """The sha256 that a file of the results folder must have.

    `pending` is that of the content which is about to replace it, so that a kill in between is no damage.
    """

    name: str
    sha256: str = ""  # empty: there was no such file
    pending: str = ""


@dataclass(frozen=True, kw_only=True)
class LookRecord:
    """A verdict on all runs of so many seeds: it spends a part of the 5 % that the study may err with in its life."""

    runs: tuple[str, ...]  # names of the runs of seed 0, with and without code: a study that shares one goes on with it
    seeds: int
    end: int  # the number of seeds that was planned at the first look
    pairs: Mapping[str, int] = field(default_factory=dict)  # of each comparison that lacked some, as runs had failed


def device_label(device: str, precision: Precision) -> str:
    """The device, with the precision of its matrix products if that is not float32: a measured time belongs to both."""
    return device if precision == "float32" else f"{device}, {precision}"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How the runs of a cohort are trained on a device: measured once and stored, so that resuming changes nothing."""

    cohort: str
    device: str  # a `device_label`
    strategy: Strategy
    threads: int
    runs: int  # with how many the times were measured
    loop_ms: float  # a step of one run in a loop
    fused_ms: float | None  # a step of one run when fused (a step of all of them, divided); None: not measured
    fits: int  # runs that fit into the device's memory at once
    reason: str = ""  # why the runs cannot be fused
    captured_ms: float | None = None  # a step of one run as a CUDA graph; None: not measured
    compiled: bool | None = None  # whether fused steps are compiled; None: decided by the number of steps
    compile_saves: float | None = None  # expected seconds, after those of compiling
    compile_seconds: float | None = None  # expected

    @property
    def alone_ms(self) -> float:
        """A step of one run in the faster of the two ways to train runs one after the other."""
        return min(self.loop_ms, self.captured_ms or self.loop_ms)


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """Training steps of a cohort's run alone, timed in turns with those of the study's other cohorts on a device."""

    cohort: str
    device: str  # a `device_label`
    group: str  # the same for all cohorts that were timed together: their rounds are neighbours
    ms: tuple[float, ...]  # a step, in each round; empty: too slow to be timed, or the design raised
    steps: int  # of an epoch
    memory_bytes: int | None  # of a run and its largest step; None: the design raised


@dataclass(frozen=True, kw_only=True)
class TrainingState:
    """Which runs have ended and which epochs are stored: what `status` shows."""

    runs: Mapping[str, RunRecord]  # identity -> record
    epochs: Mapping[str, Collection[int]]  # trajectory -> epochs
    choices: Mapping[tuple[str, str], Choice] = field(default_factory=dict)  # (cohort, device) -> choice
    damaged: tuple[str, ...] = ()  # a line for each part of the store that could not be used


@dataclass(frozen=True, kw_only=True)
class Records:
    """Everything in a results folder, as its readers (verdict, report) get it."""

    epochs: Mapping[str, Mapping[int, EpochRecord]]  # trajectory -> epoch -> record
    runs: Mapping[str, RunRecord]  # identity -> record
    finals: Mapping[str, Mapping[str, FinalRecord]]  # identity -> evaluation -> record
    exhibits: Mapping[str, Mapping[str, ExhibitRecord]] = field(default_factory=dict)  # identity -> name -> record
    choices: Mapping[tuple[str, str], Choice] = field(default_factory=dict)  # (cohort, device) -> choice
    step_times: Mapping[tuple[str, str], StepTimes] = field(default_factory=dict)  # (cohort, device) -> times
    looks: tuple[LookRecord, ...] = ()
    damaged: tuple[str, ...] = ()  # a line for each part of the store that could not be used

    @property
    def state(self) -> TrainingState:
        """Which runs have ended and which epochs are there."""
        return TrainingState(runs=self.runs, epochs=self.epochs, choices=self.choices, damaged=self.damaged)

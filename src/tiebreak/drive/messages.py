"""Jobs for workers and messages from them: one JSON object a line, so that a worker can be a process or a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter

from tiebreak.errors import TiebreakError
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FinalRecord,
    Precision,
    RunRecord,
    StepTimes,
    Strategy,
    device_label,
)
from tiebreak.text import one_line
from tiebreak.warned import first_time

Decoded = TypeVar("Decoded")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One unit of work: runs of one cohort, where data and results folder are, and the checkpoints to continue from.

    `train` trains them (fused: as one computation; else: one after the other), `measure` times the strategies, `time`
    times steps of one run of each cohort in turns, for about so many `seconds`, `exhibits` makes the exhibits of one
    finished run, with these `examples` of the test split.
    """

    runs: tuple[dict[str, Any], ...]
    folder: str
    data_dir: str | None
    device: str
    work: Literal["train", "measure", "time", "exhibits"] = "train"
    strategy: Strategy = "loop"
    designs_from: str | None = None
    checkpoints: tuple[tuple[CheckpointRecord, ...], ...] = ()  # for each run, furthest first
    examples: tuple[int, ...] = ()
    seconds: float = 0.0
    precision: Precision = "float32"
    compiled: bool | None = None  # fused steps on a GPU; None: decided by the number of steps
    checksums: str | None = None  # a file: what the driver has hashed (`data.checksums`)

    @property
    def device_label(self) -> str:
        """The device and its precision, as records name them."""
        return device_label(self.device, self.precision)


@dataclass(frozen=True, kw_only=True)
class PendingRun:
    """A run that is about to be trained, as the progress display needs it."""

    label: str
    cohort: str  # its name
    trajectory: str
    epochs: int
    done: int  # epochs that its checkpoint has already
    strategy: Strategy
    cost: float = 1.0  # of an epoch, relative to other runs of the study: for the time left


@dataclass(frozen=True, kw_only=True)
class TrainingStarted:
    """What is about to be trained, by identity. Sent by the driver itself, once the strategies are known."""

    runs: dict[str, PendingRun]
    steps: int  # of an epoch of one run
    stored: int  # runs that have a result already
    workers: int
    unit: Literal["epoch", "run"] = "epoch"  # what progress is counted in: a program's epochs are its own
    kind: Literal["TrainingStarted"] = "TrainingStarted"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How many epochs of these runs (trained together) are done, as a fraction, and their total steps per second."""

    identities: tuple[str, ...]  # without runs that diverged
    epochs: float
    rate: float
    kind: Literal["Progress"] = "Progress"


@dataclass(frozen=True, kw_only=True)
class StrategyMeasured:
    """Which strategy a cohort's runs are trained with, and why."""

    choice: Choice
    kind: Literal["StrategyMeasured"] = "StrategyMeasured"


@dataclass(frozen=True, kw_only=True)
class StepsTimed:
    """Steps of the study's arms alone, timed in turns. Stored in one transaction."""

    times: tuple[StepTimes, ...]
    kind: Literal["StepsTimed"] = "StepsTimed"


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """An epoch of runs trained together, and their checkpoints if they were saved. Stored in one transaction."""

    records: tuple[EpochRecord, ...]
    checkpoints: tuple[CheckpointRecord, ...]
    kind: Literal["EpochDone"] = "EpochDone"


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """The end of a run, with its evaluations on the test split; of a program, with all its epochs too."""

    record: RunRecord
    finals: tuple[FinalRecord, ...] = ()
    epochs: tuple[EpochRecord, ...] = ()
    kind: Literal["RunEnded"] = "RunEnded"


@dataclass(frozen=True, kw_only=True)
class ExhibitsMade:
    """The exhibits of a finished run."""

    identity: str
    exhibits: tuple[ExhibitRecord, ...]
    kind: Literal["ExhibitsMade"] = "ExhibitsMade"


@dataclass(frozen=True, kw_only=True)
class Note:
    """A line for the user; training goes on."""

    text: str
    once: str = ""  # a warning, which other workers send too: what it says, without the line
    kind: Literal["Note"] = "Note"


@dataclass(frozen=True, kw_only=True)
class Abort:
    """An error that ends the whole study: no disk space, no data."""

    text: str
    kind: Literal["Abort"] = "Abort"


@dataclass(frozen=True, kw_only=True)
class MachineState:
    """One machine of a cluster, and what it does for this study."""

    name: str
    cores: int
    cores_in_use: int
    gpus: int
    jobs: int  # running
    alive: bool


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """The machines of a cluster, sent when something has changed. Not stored."""

    machines: tuple[MachineState, ...]
    kind: Literal["ClusterState"] = "ClusterState"


Message = (
    TrainingStarted
    | Progress
    | StrategyMeasured
    | StepsTimed
    | EpochDone
    | RunEnded
    | ExhibitsMade
    | Note
    | Abort
    | ClusterState
)

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="kind")])
_JOB = TypeAdapter(Job)

# json, not pydantic, writes the text: it keeps NaN, infinities and file names that are not UTF-8, all in ASCII.


def said_once(messages: Iterable[Message]) -> Iterator[Message]:
    """Without the warnings that this process, or a worker, has said already."""
    return (each for each in messages if not isinstance(each, Note) or not each.once or first_time(each.once))


def encode(message: Message) -> str:
    """The message as one line."""
    return json.dumps(_MESSAGE.dump_python(message))


def decode(line: str) -> Message:
    """The message of a line."""
    return _decoded(_MESSAGE, line)


def encode_job(job: Job) -> str:
    """The job as one line."""
    return json.dumps(_JOB.dump_python(job))


def decode_job(line: str) -> Job:
    """The job of a line."""
    return _decoded(_JOB, line)


def _decoded(adapter: TypeAdapter[Decoded], line: str) -> Decoded:
    try:
        return adapter.validate_python(json.loads(line))
    except (ValueError, RecursionError) as error:  # not JSON, or of another form
        reason = one_line(str(error).partition("\n")[0], 100)
        raise TiebreakError(f"a line between processes is no message ({reason}): {one_line(line, 80)}") from None

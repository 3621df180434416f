"""What a worker tells the driver: one JSON object a line, so that the two can be processes, machines or one loop."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tiebreak.results.packing import pack, unpack
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FinalRecord,
    Precision,
    RunRecord,
    Strategy,
    place_of,
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One unit of work: runs that belong together, where data and folder are, and the states to continue from.

    `train` trains them (fused: as one computation; loop: one after the other), `measure` finds out which of the two is
    faster, `show` makes the exhibits of one finished run, `examples` of the test split among them.
    """

    runs: tuple[dict[str, Any], ...]
    folder: str
    data_dir: str | None
    device: str
    work: Literal["train", "measure", "show"] = "train"
    strategy: Strategy = "loop"
    designs_from: str | None = None
    checkpoints: tuple[tuple[CheckpointRecord, ...], ...] = ()  # for each run, best first
    examples: tuple[int, ...] = ()
    precision: Precision = "float32"

    @property
    def place(self) -> str:
        """Where it is done, as records name it."""
        return place_of(self.device, self.precision)


@dataclass(frozen=True, kw_only=True)
class Starting:
    """A run that is about to be trained, as the display needs it."""

    label: str
    cohort: str  # its name
    trajectory: str
    epochs: int
    done: int  # epochs that it continues after
    strategy: Strategy
    cost: float = 1.0  # of an epoch, compared with other runs of the study: for the time left


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What is about to be trained, by identity. Said by the driver itself, once the strategies are known."""

    runs: dict[str, Starting]
    steps: int  # of an epoch of one run
    stored: int  # runs that have their result already
    workers: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How many epochs of these runs (trained together) are done, as a fraction, and their steps per second in all."""

    identities: tuple[str, ...]  # those still alive
    epochs: float
    rate: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Which strategy a cohort's runs are trained with, and why."""

    choice: Choice


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """An epoch of runs trained together, and the states after it where they were saved. Kept in one transaction."""

    records: tuple[EpochRecord, ...]
    checkpoints: tuple[CheckpointRecord, ...]


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """The end of a run, with its evaluations on the test split."""

    record: RunRecord
    finals: tuple[FinalRecord, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The exhibits of a finished run."""

    identity: str
    exhibits: tuple[ExhibitRecord, ...]


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something that the user should read; training goes on."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Something that stops the whole study: no disk space, no data."""

    text: str


Message = Begun | Progress | Measured | EpochDone | RunEnded | Shown | Note | Stop
KINDS = {kind.__name__: kind for kind in (Begun, Progress, Measured, EpochDone, RunEnded, Shown, Note, Stop)}


def encode(message: Message) -> str:
    """The message as one line."""
    if isinstance(message, RunEnded):
        finals = [
            {**asdict(replace(final, outcomes={})), "outcomes": _text(pack(final.outcomes))} for final in message.finals
        ]
        content: dict[str, Any] = {"record": asdict(message.record), "finals": finals}
    elif isinstance(message, Shown):
        shown = [{"name": each.name, "arrays": _text(pack(each.arrays))} for each in message.exhibits]
        content = {"identity": message.identity, "exhibits": shown}
    else:
        content = asdict(message)
    return json.dumps({"kind": type(message).__name__, **content})


def decode(line: str) -> Message:
    """The message of a line."""
    content = json.loads(line)
    kind = KINDS[content.pop("kind")]
    if kind is Begun:
        runs = {identity: Starting(**item) for identity, item in content.pop("runs").items()}
        return Begun(**content, runs=runs)
    if kind is Progress:
        return Progress(**{**content, "identities": tuple(content["identities"])})
    if kind is Measured:
        return Measured(choice=Choice(**content["choice"]))
    if kind is EpochDone:
        return EpochDone(
            records=tuple(EpochRecord(**item) for item in content["records"]),
            checkpoints=tuple(CheckpointRecord(**item) for item in content["checkpoints"]),
        )
    if kind is RunEnded:
        finals = tuple(
            FinalRecord(**{**item, "outcomes": unpack(_bytes(item["outcomes"]))}) for item in content["finals"]
        )
        return RunEnded(record=RunRecord(**content["record"]), finals=finals)
    if kind is Shown:
        identity = content["identity"]
        shown = tuple(
            ExhibitRecord(identity=identity, name=item["name"], arrays=unpack(_bytes(item["arrays"])))
            for item in content["exhibits"]
        )
        return Shown(identity=identity, exhibits=shown)
    return kind(**content)


def encode_job(job: Job) -> str:
    """The job as one line."""
    return json.dumps(asdict(job))


def decode_job(line: str) -> Job:
    """The job of a line."""
    content = json.loads(line)
    states = tuple(tuple(CheckpointRecord(**item) for item in each) for each in content.pop("checkpoints"))
    content |= {name: tuple(content[name]) for name in ("runs", "examples")}
    return Job(**content, checkpoints=states)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)

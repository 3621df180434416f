"""What a worker tells the driver: one JSON object a line, so that the two can be processes, machines or one loop."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from tiebreak.results.record import CheckpointRecord, EpochRecord, ExhibitRecord, FinalRecord, RunRecord
from tiebreak.results.store import pack, unpack


@dataclass(frozen=True, kw_only=True)
class Job:
    """One unit of work: a run, where its data and folder are, and the states it may continue from, best first.

    With `examples` (of the test split, maybe none) the run is finished and its exhibits are wanted.
    """

    run: dict[str, Any]
    folder: str
    data_dir: str | None
    device: str
    designs_from: str | None = None
    checkpoints: tuple[CheckpointRecord, ...] = ()
    examples: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What is about to be trained: label, epochs and epochs done already, by identity. Said by the driver itself."""

    labels: dict[str, str]
    epochs: dict[str, int]
    done: dict[str, float]
    stored: int  # runs that have their result already
    workers: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How many epochs of the run are done, as a fraction."""

    identity: str
    epochs: float


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """An epoch's record and the state after it."""

    record: EpochRecord
    checkpoint: CheckpointRecord


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


Message = Begun | Progress | EpochDone | RunEnded | Shown | Note | Stop
KINDS = {kind.__name__: kind for kind in (Begun, Progress, EpochDone, RunEnded, Shown, Note, Stop)}


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
    if kind is EpochDone:
        record, checkpoint = EpochRecord(**content["record"]), CheckpointRecord(**content["checkpoint"])
        return EpochDone(record=record, checkpoint=checkpoint)
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
    checkpoints = tuple(CheckpointRecord(**item) for item in content.pop("checkpoints"))
    examples = content.pop("examples")
    return Job(**content, checkpoints=checkpoints, examples=None if examples is None else tuple(examples))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)

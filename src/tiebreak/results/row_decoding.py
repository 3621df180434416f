"""Rows of the store as records, and what a row holds as JSON.

A row may hold anything: each part is checked, and a ValueError says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tiebreak.errors import TiebreakError
from tiebreak.results.packing import LIMIT_BYTES, PackedArrays, unpack
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FileRecord,
    FinalRecord,
    LookRecord,
    RunRecord,
    Status,
    StepTimes,
    Strategy,
)
from tiebreak.text import encodable, printable

Seconds = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1 << 53)]
Metrics = dict[str, float]  # of a run that diverged, NaN is a result


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Epoch(_Content):
    metrics: Metrics
    seconds: dict[str, Seconds]


class _Run(_Content):
    status: Status
    epoch: Count
    reason: str
    provenance: dict[str, str]
    output: str = ""


class _Final(_Content):
    metrics: Metrics
    seconds: Seconds


class _Choice(_Content):
    strategy: Strategy
    threads: Count
    runs: Count
    loop_ms: Seconds
    fused_ms: Seconds | None
    fits: Count
    reason: str
    captured_ms: Seconds | None = None
    compiled: bool | None = None
    compile_saves: float | None = None
    compile_seconds: Seconds | None = None


class _StepTimes(_Content):
    group: str
    ms: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]]
    steps: Count
    memory_bytes: Count | None


class _Look(_Content):
    end: Annotated[int, Field(ge=1, le=1 << 53)]
    runs: list[str]
    pairs: dict[str, Count] = {}


class Decoder:
    """Makes records of rows; the arrays of all of them together have at most `limit` bytes.

    Arrays are unpacked when they are looked up: what is wrong with them is then one line that names `where`.
    """

    def __init__(self, limit: int, where: str = "") -> None:
        self._left, self._where = limit, where

    def epoch(self, trajectory: Any, epoch: Any, content: Any) -> EpochRecord:
        """A row of the table epochs."""
        return EpochRecord(trajectory=_text(trajectory), epoch=_whole(epoch), **_fields(_Epoch, content))

    def run(self, identity: Any, trajectory: Any, content: Any) -> RunRecord:
        """A row of the table runs."""
        return RunRecord(identity=_text(identity), trajectory=_text(trajectory), **_fields(_Run, content))

    def final(self, identity: Any, evaluation: Any, content: Any, outcomes: Any) -> FinalRecord:
        """A row of the table finals."""
        fields = _fields(_Final, content)
        return FinalRecord(
            identity=_text(identity),
            evaluation=_text(evaluation),
            outcomes=self._arrays(f"table finals, {identity} {evaluation}", outcomes),
            **fields,
        )

    def exhibit(self, identity: Any, name: Any, arrays: Any) -> ExhibitRecord:
        """A row of the table exhibits."""
        packed = self._arrays(f"table exhibits, {identity} {name}", arrays)
        return ExhibitRecord(identity=_text(identity), name=_text(name), arrays=packed)

    def choice(self, cohort: Any, device: Any, content: Any) -> Choice:
        """A row of the table strategies."""
        return Choice(cohort=_text(cohort), device=_text(device), **_fields(_Choice, content))

    def step_times(self, cohort: Any, device: Any, content: Any) -> StepTimes:
        """A row of the table step_times."""
        fields = _fields(_StepTimes, content)
        return StepTimes(cohort=_text(cohort), device=_text(device), **(fields | {"ms": tuple(fields["ms"])}))

    def checkpoint(self, identity: Any, trajectory: Any, epoch: Any, file: Any, sha256: Any) -> CheckpointRecord:
        """A row of the table checkpoints; `checkpoint_file` decides where its file may lie."""
        return CheckpointRecord(
            identity=_text(identity),
            trajectory=_text(trajectory),
            epoch=_whole(epoch),
            file=_text(file),
            sha256=_text(sha256),
        )

    def file(self, name: Any, sha256: Any, pending: Any) -> FileRecord:
        """A row of the table files."""
        return FileRecord(name=_text(name), sha256=_text(sha256), pending=_text(pending))

    def look(self, key: Any, seeds: Any, content: Any) -> LookRecord:
        """A row of the table looks."""
        fields = _fields(_Look, content)
        return LookRecord(seeds=_whole(seeds, "a number of seeds"), **(fields | {"runs": tuple(fields["runs"])}))

    def _arrays(self, row: str, content: Any) -> PackedArrays:
        if not isinstance(content, bytes):
            raise ValueError(f"{type(content).__name__} in the place of arrays")
        return PackedArrays(content, partial(self._unpack, row))

    def _unpack(self, row: str, content: bytes) -> Mapping[str, Any]:
        try:
            arrays = unpack(content, min(LIMIT_BYTES, self._left))
        except ValueError as error:
            raise TiebreakError(f"{self._where}: {printable(row)[:100]}: not a record of Tiebreak: {error}") from None
        self._left -= sum(array.nbytes for array in arrays.values())
        return arrays


def row_content(fields: Mapping[str, Any]) -> str:
    r"""What a row holds, as JSON that can be read back: halves of a surrogate pair become visible escapes.

    They come with file names that are not UTF-8, in the messages of exceptions. JSON has no text for them.

    >>> row_content({"reason": "caf\udce9"})
    '{"reason": "caf\\\\udce9"}'
    """
    text = json.dumps(fields)
    return json.dumps(_encodable(fields)) if "\\ud" in text else text


def _encodable(content: Any) -> Any:
    if isinstance(content, str):
        return encodable(content)
    if isinstance(content, Mapping):
        return {_encodable(name): _encodable(value) for name, value in content.items()}
    return [_encodable(each) for each in content] if isinstance(content, list | tuple) else content


def _fields(kind: type[_Content], content: Any) -> dict[str, Any]:
    try:
        return dict(kind.model_validate_json(_text(content)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"{key or 'content'}: {first['msg']}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} in the place of text")
    return value


def _whole(value: Any, what: str = "an epoch") -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} in the place of {what}")
    return value

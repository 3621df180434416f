"""The records of a study that is being trained: what was read stays, and only rows that are new are read.

A row is never changed in place: what replaces it gets the next rowid, or that of the last row if it replaces that one.
Where rows were removed, or the file is another one, everything is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from tiebreak.errors import TiebreakError
from tiebreak.results.connection import DamagedStoreError
from tiebreak.results.migration import row_hash
from tiebreak.results.record import EpochRecord, FinalRecord, Records, RunRecord
from tiebreak.results.row_decoding import Decoder
from tiebreak.results.store import ARRAY_BYTES, UNPACKED, Store
from tiebreak.text import printable

Record = TypeVar("Record")
Key = tuple[Any, ...]


class _Table:
    """Which rows of a table were read, by their key."""

    def __init__(self, name: str, key: int) -> None:
        self._name, self._key = name, key  # the first columns are the key
        self._last = (0, "")  # rowid and hash: the last row is read again, since another may have its place
        self._problems: dict[Key, str] = {}  # empty for a row that is as it was stored

    def read(self, store: Store) -> list[tuple[Key, list[Any] | None]] | None:
        """The rows that are new, the content of a damaged one None; None where rows have gone since the last time."""
        found, count = store.rows_from(self._name, self._last[0])
        new: list[tuple[Key, list[Any] | None]] = []
        for rowid, *content, sha256 in found:
            if (rowid, sha256) == self._last:
                continue
            key, intact = tuple(content[: self._key]), row_hash(*content) == sha256
            name = "" if intact else printable(f"{content[0]} {content[1]}")[:80]
            self._problems[key], self._last = name, (rowid, sha256)
            new.append((key, content if intact else None))
        return new if len(self._problems) == count else None

    def damaged(self, path: Path) -> list[str]:
        """A line for each row that is not as it was stored."""
        names = filter(None, self._problems.values())
        return [f"{path}: table {self._name}, {name}: damaged: its content is not what was stored" for name in names]


class _Lazy(Mapping[int, Record], Generic[Record]):
    """Rows of one trajectory by epoch, made records when they are looked up: few of many are."""

    def __init__(self, decode: Callable[[Sequence[Any]], Record]) -> None:
        self._decode, self._rows = decode, dict[int, Sequence[Any]]()
        self._records: dict[int, Record] = {}

    def add(self, epoch: int, row: Sequence[Any]) -> None:
        self._rows[epoch] = row
        self._records.pop(epoch, None)

    def __getitem__(self, epoch: int) -> Record:
        if epoch not in self._records:
            self._records[epoch] = self._decode(self._rows[epoch])
        return self._records[epoch]

    def __contains__(self, epoch: object) -> bool:
        return epoch in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class GrowingRecords:
    """Reads the records of one folder again and again; exhibits and the times of strategies are left out."""

    def __init__(self) -> None:
        self._file: tuple[int, int] | None = None
        self._forget()

    def _forget(self) -> None:
        self._tables = {"epochs": _Table("epochs", 2), "runs": _Table("runs", 1), "finals": _Table("finals", 2)}
        self._epochs: dict[str, _Lazy[EpochRecord]] = {}
        self._runs: dict[str, RunRecord] = {}
        self._finals: dict[str, dict[str, FinalRecord]] = {}

    def read(self, store: Store) -> tuple[Records, bool]:
        """All records as of one moment, and whether runs have ended since the last time."""
        status = store.path.stat()
        if (status.st_dev, status.st_ino) != self._file:
            self._forget()
            self._file = status.st_dev, status.st_ino
        try:
            with store.transaction("DEFERRED"):
                new = self._new_rows(store)
                if any(rows is None for rows in new.values()):
                    self._forget()
                    new = self._new_rows(store)
                looks = store.looks()
        except DamagedStoreError:  # this reads around damaged pages
            self._forget()
            self._file = None
            return store.records(), True
        try:
            self._add(store, {table: rows or [] for table, rows in new.items()})
        except TiebreakError:
            self._file = None
            raise
        damaged = [line for table in self._tables.values() for line in table.damaged(store.path)]
        records = Records(
            epochs=self._epochs, runs=self._runs, finals=self._finals, looks=looks, damaged=tuple(damaged)
        )
        return records, bool(new["runs"] or new["finals"])

    def _new_rows(self, store: Store) -> dict[str, list[tuple[Key, list[Any] | None]] | None]:
        return {name: table.read(store) for name, table in self._tables.items()}

    def _add(self, store: Store, new: Mapping[str, list[tuple[Key, list[Any] | None]]]) -> None:
        decoder = Decoder(ARRAY_BYTES + UNPACKED * store.path.stat().st_size, str(store.path))
        decode_epoch = partial(_decoded, store.path, "epochs", decoder.epoch)
        for (trajectory, epoch), row in new["epochs"]:
            if row is not None:
                self._epochs.setdefault(trajectory, _Lazy(decode_epoch)).add(epoch, row)
        for (identity,), row in new["runs"]:
            self._runs.pop(identity, None)
            if row is not None:
                self._runs[identity] = _decoded(store.path, "runs", decoder.run, row)
        for (identity, evaluation), row in new["finals"]:
            finals = self._finals.setdefault(identity, {})
            finals.pop(evaluation, None)
            if row is not None:
                finals[evaluation] = _decoded(store.path, "finals", decoder.final, row)


def _decoded(path: Path, table: str, decode: Callable[..., Record], row: Sequence[Any]) -> Record:
    try:
        return decode(*row)
    except ValueError as error:
        name = printable(f"{row[0]} {row[1]}")[:80]
        raise TiebreakError(f"{path}: table {table}, {name}: not a record of Tiebreak: {error}") from None

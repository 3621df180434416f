"""The store: one SQLite file per results folder. One writer (the driver); readers never block it.

WAL with synchronous=FULL and BEGIN IMMEDIATE: a committed transaction survives `kill -9` and a power cut. Every row of
a record carries the sha256 of its content: a changed row is never used, and `tiebreak check` names it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from tiebreak.errors import TiebreakError
from tiebreak.results.packing import pack, unpack
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FinalRecord,
    Records,
    RunRecord,
)

STORE_FILE = "records.sqlite"
SCHEMA_VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS epochs (trajectory TEXT, epoch INTEGER, content TEXT, sha256 TEXT,
    PRIMARY KEY (trajectory, epoch));
CREATE TABLE IF NOT EXISTS runs (identity TEXT PRIMARY KEY, trajectory TEXT, content TEXT, sha256 TEXT);
CREATE TABLE IF NOT EXISTS finals (identity TEXT, evaluation TEXT, content TEXT, outcomes BLOB, sha256 TEXT,
    PRIMARY KEY (identity, evaluation));
CREATE TABLE IF NOT EXISTS exhibits (identity TEXT, name TEXT, arrays BLOB, sha256 TEXT, PRIMARY KEY (identity, name));
CREATE TABLE IF NOT EXISTS checkpoints (identity TEXT, trajectory TEXT, epoch INTEGER, file TEXT, sha256 TEXT,
    PRIMARY KEY (identity, epoch));
CREATE TABLE IF NOT EXISTS strategies (cohort TEXT, device TEXT, content TEXT, sha256 TEXT,
    PRIMARY KEY (cohort, device));
"""
HASHED = ("epochs", "runs", "finals", "exhibits", "strategies")  # their last column is the hash of the others
LATER = ("strategies",)  # added to schema 1 later: a reader takes them as empty where they do not exist


def _hash(*parts: str | int | bytes) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()


class Store:
    """Records of a folder. Open it with `Store.create` to write or `Store.open` to read."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def create(cls, folder: Path) -> Store:
        """The folder's store for its one writer; created if it does not exist."""
        path = folder / STORE_FILE
        with _readable(path):
            connection = _connect(path)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            store = cls(path, connection)
            with store.transaction():
                _check_version(path, connection)
                for statement in TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        return store

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The folder's store, for reading only."""
        path = folder / STORE_FILE
        if not path.is_file():
            raise TiebreakError(f"{folder}: no {STORE_FILE}; is this the --out folder of `tiebreak run`?")
        with _readable(path):
            connection = _connect(path)
            connection.execute("PRAGMA query_only=ON")
            _check_version(path, connection)
            connection.execute("SELECT count(*) FROM runs")
        return cls(path, connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
        """All or nothing. IMMEDIATE: a writer waits at the start, never fails in the middle. DEFERRED: for readers."""
        with _readable(self.path):
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def add_epoch(self, record: EpochRecord) -> None:
        """Store an epoch. One that is stored already stays: it came from the same trajectory."""
        content = json.dumps({"metrics": dict(record.metrics), "seconds": dict(record.seconds)})
        sha256 = _hash(record.trajectory, record.epoch, content)
        row = (record.trajectory, record.epoch, content, sha256)
        self._connection.execute("INSERT OR IGNORE INTO epochs VALUES (?, ?, ?, ?)", row)

    def add_checkpoint(self, record: CheckpointRecord) -> None:
        """Store where a checkpoint is."""
        row = (record.identity, record.trajectory, record.epoch, record.file, record.sha256)
        self._connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)

    def drop_checkpoint(self, record: CheckpointRecord) -> None:
        """Remove the row of a checkpoint that is no longer needed."""
        key = (record.identity, record.epoch)
        self._connection.execute("DELETE FROM checkpoints WHERE identity = ? AND epoch = ?", key)

    def add_run(self, record: RunRecord) -> None:
        """Store how a run ended. It replaces the record of a failed attempt; a failure replaces no other record."""
        if record.status == "failed" and self._has_result(record.identity):
            return
        fields = ("status", "epoch", "reason", "provenance")
        content = json.dumps({name: getattr(record, name) for name in fields})
        row = (record.identity, record.trajectory, content, _hash(record.identity, record.trajectory, content))
        self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", row)

    def _has_result(self, identity: str) -> bool:
        """Whether an intact record says that the run is done or has diverged."""
        rows = self._rows("SELECT * FROM runs WHERE identity = ?", (identity,))
        return any(
            _hash(*content) == sha256 and json.loads(content[2])["status"] != "failed" for *content, sha256 in rows
        )

    def add_final(self, record: FinalRecord) -> None:
        """Store one evaluation on the test split."""
        content = json.dumps({"metrics": dict(record.metrics), "seconds": record.seconds})
        outcomes = pack(record.outcomes)
        sha256 = _hash(record.identity, record.evaluation, content, outcomes)
        row = (record.identity, record.evaluation, content, outcomes, sha256)
        self._connection.execute("INSERT OR REPLACE INTO finals VALUES (?, ?, ?, ?, ?)", row)

    def add_exhibit(self, record: ExhibitRecord) -> None:
        """Store an exhibit of a run."""
        arrays = pack(record.arrays)
        row = (record.identity, record.name, arrays, _hash(record.identity, record.name, arrays))
        self._connection.execute("INSERT OR REPLACE INTO exhibits VALUES (?, ?, ?, ?)", row)

    def add_choice(self, choice: Choice) -> None:
        """Store the strategy of a cohort on a device."""
        fields = asdict(choice)
        cohort, device = fields.pop("cohort"), fields.pop("device")
        content = json.dumps(fields)
        row = (cohort, device, content, _hash(cohort, device, content))
        self._connection.execute("INSERT OR REPLACE INTO strategies VALUES (?, ?, ?, ?)", row)

    def choices(self) -> dict[tuple[str, str], Choice]:
        """The strategies of cohorts, by cohort and device."""
        return {
            (cohort, device): Choice(cohort=cohort, device=device, **json.loads(content))
            for cohort, device, content in self._verified("strategies")
        }

    def checkpoints(self, identities: Collection[str] | None = None) -> list[CheckpointRecord]:
        """Every checkpoint, or those of some runs."""
        names = ("identity", "trajectory", "epoch", "file", "sha256")
        only = "" if identities is None else f"WHERE identity IN ({', '.join('?' * len(identities))})"
        query = f"SELECT {', '.join(names)} FROM checkpoints {only} ORDER BY identity, epoch"
        return [CheckpointRecord(**dict(zip(names, row, strict=True))) for row in self._rows(query, identities or ())]

    def records(self) -> Records:
        """Everything else, as of one moment."""
        with self.transaction("DEFERRED"):
            rows = {table: self._verified(table) for table in HASHED if table != "strategies"}
            choices = self.choices()
        epochs: dict[str, dict[int, EpochRecord]] = {}
        for trajectory, epoch, content in rows["epochs"]:
            fields = json.loads(content)
            epochs.setdefault(trajectory, {})[epoch] = EpochRecord(trajectory=trajectory, epoch=epoch, **fields)
        runs = {
            identity: RunRecord(identity=identity, trajectory=trajectory, **json.loads(content))
            for identity, trajectory, content in rows["runs"]
        }
        finals: dict[str, dict[str, FinalRecord]] = {}
        for identity, name, content, blob in rows["finals"]:
            record = FinalRecord(identity=identity, evaluation=name, outcomes=unpack(blob), **json.loads(content))
            finals.setdefault(identity, {})[name] = record
        exhibits: dict[str, dict[str, ExhibitRecord]] = {}
        for identity, name, blob in rows["exhibits"]:
            shown = ExhibitRecord(identity=identity, name=name, arrays=unpack(blob))
            exhibits.setdefault(identity, {})[name] = shown
        return Records(epochs=epochs, runs=runs, finals=finals, exhibits=exhibits, choices=choices)

    def rows(self) -> int:
        """How many rows carry a hash."""
        return sum(self._rows(f"SELECT count(*) FROM {table}")[0][0] for table in self._tables())

    def damage(self) -> list[str]:
        """The problems of the stored rows, one line each."""
        checked = [" ".join(row[0].split()) for row in self._rows("PRAGMA integrity_check")]
        found = [f"{self.path}: {line}" for line in checked if line != "ok"]
        for table in self._tables():
            for *content, sha256 in self._rows(f"SELECT * FROM {table}"):
                if _hash(*content) != sha256:
                    name = f"{content[0]} {content[1]}"
                    found.append(f"{self.path}: table {table}, {name}: its content is not what was stored")
        return found

    def _tables(self) -> list[str]:
        """The tables whose rows carry a hash, without those that an older folder does not have."""
        there = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return [table for table in HASHED if table in there or table not in LATER]

    def _verified(self, table: str) -> list[Any]:
        """The rows of a table without their hashes, which are checked."""
        rows = self._rows(f"SELECT * FROM {table} ORDER BY 1, 2") if table in self._tables() else []
        if any(_hash(*content) != sha256 for *content, sha256 in rows):
            raise TiebreakError(f"{self.path}: a damaged row in table {table}; `tiebreak check` names it")
        return [content for *content, _ in rows]

    def _rows(self, query: str, values: Collection[str] = ()) -> list[Any]:
        with _readable(self.path):
            return self._connection.execute(query, tuple(values)).fetchall()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.text_factory = lambda raw: raw.decode(errors="replace")  # damaged text is read too, to be named
    return connection


def _check_version(path: Path, connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, SCHEMA_VERSION):  # 0: a new file
        raise TiebreakError(f"{path}: written by another version of Tiebreak (schema {version})")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise TiebreakError(f"{path}: {error}; restore it from a copy, or give another --out folder") from None

"""The store: one SQLite file per results folder. One writer (the driver); readers never block it.

WAL with synchronous=FULL and BEGIN IMMEDIATE: what a transaction acknowledged survives `kill -9` and a power cut. Every
row carries the sha256 of its content, so that `tiebreak check` can tell a changed row from a stored one.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.errors import TiebreakError
from tiebreak.results.record import CheckpointRecord, EpochRecord, FinalRecord, Outcomes, Records, RunRecord

STORE_FILE = "records.sqlite"
SCHEMA_VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS epochs (trajectory TEXT, epoch INTEGER, content TEXT, sha256 TEXT,
    PRIMARY KEY (trajectory, epoch));
CREATE TABLE IF NOT EXISTS runs (identity TEXT PRIMARY KEY, trajectory TEXT, content TEXT, sha256 TEXT);
CREATE TABLE IF NOT EXISTS finals (identity TEXT, evaluation TEXT, content TEXT, outcomes BLOB, sha256 TEXT,
    PRIMARY KEY (identity, evaluation));
CREATE TABLE IF NOT EXISTS checkpoints (identity TEXT, trajectory TEXT, epoch INTEGER, steps INTEGER, file TEXT,
    sha256 TEXT, PRIMARY KEY (identity, epoch));
"""


def _hash(*parts: str | bytes) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()


def pack(outcomes: Outcomes) -> bytes:
    """Arrays as the bytes of an npz file."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(values, np.float32) for name, values in outcomes.items()}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, Any]:
    """The arrays of `pack`; no pickle is ever loaded."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


class Store:
    """Records of a folder. Open it with `Store.create` to write or `Store.open` to read."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def create(cls, folder: Path) -> Store:
        """The folder's store, made if it is not there, for the one writer."""
        path = folder / STORE_FILE
        with _readable(path):
            connection = sqlite3.connect(path, isolation_level=None, timeout=30)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            store = cls(path, connection)
            with store.transaction():
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version not in (0, SCHEMA_VERSION):
                    raise TiebreakError(f"{path}: written by another version of Tiebreak (schema {version})")
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
            connection = sqlite3.connect(path, isolation_level=None, timeout=30)
            connection.execute("PRAGMA query_only=ON")
            connection.execute("SELECT count(*) FROM runs")
        return cls(path, connection)

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. IMMEDIATE: a writer waits at the start, never fails in the middle."""
        with _readable(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def add_epoch(self, record: EpochRecord) -> None:
        """Keep an epoch; one that is there already came from the same trajectory and is left as it is."""
        content = json.dumps({"metrics": dict(record.metrics), "seconds": dict(record.seconds)})
        sha256 = _hash(record.trajectory, str(record.epoch), content)
        row = (record.trajectory, record.epoch, content, sha256)
        self._connection.execute("INSERT OR IGNORE INTO epochs VALUES (?, ?, ?, ?)", row)

    def add_checkpoint(self, record: CheckpointRecord) -> None:
        """Keep where a state lies."""
        row = (record.identity, record.trajectory, record.epoch, record.steps, record.file, record.sha256)
        self._connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", row)

    def drop_checkpoint(self, record: CheckpointRecord) -> None:
        """Forget a state that is no longer needed."""
        key = (record.identity, record.epoch)
        self._connection.execute("DELETE FROM checkpoints WHERE identity = ? AND epoch = ?", key)

    def add_run(self, record: RunRecord) -> None:
        """Keep how a run ended; a run that failed and was tried again is replaced."""
        fields = ("status", "epoch", "reason", "provenance")
        content = json.dumps({name: getattr(record, name) for name in fields})
        row = (record.identity, record.trajectory, content, _hash(record.identity, record.trajectory, content))
        self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", row)

    def add_final(self, record: FinalRecord) -> None:
        """Keep one evaluation on the test split."""
        content = json.dumps({"metrics": dict(record.metrics), "seconds": record.seconds})
        outcomes = pack(record.outcomes)
        sha256 = _hash(record.identity, record.evaluation, content, outcomes)
        row = (record.identity, record.evaluation, content, outcomes, sha256)
        self._connection.execute("INSERT OR REPLACE INTO finals VALUES (?, ?, ?, ?, ?)", row)

    def checkpoints(self) -> list[CheckpointRecord]:
        """Every state that is kept."""
        names = ("identity", "trajectory", "epoch", "steps", "file", "sha256")
        rows = self._rows(f"SELECT {', '.join(names)} FROM checkpoints ORDER BY identity, epoch")
        return [CheckpointRecord(**dict(zip(names, row, strict=True))) for row in rows]

    def records(self) -> Records:
        """Everything else, at one moment."""
        epochs: dict[str, dict[int, EpochRecord]] = {}
        for trajectory, epoch, content in self._rows("SELECT trajectory, epoch, content FROM epochs ORDER BY epoch"):
            fields = self._json(content)
            epochs.setdefault(trajectory, {})[epoch] = EpochRecord(trajectory=trajectory, epoch=epoch, **fields)
        runs = {
            identity: RunRecord(identity=identity, trajectory=trajectory, **self._json(content))
            for identity, trajectory, content in self._rows("SELECT identity, trajectory, content FROM runs")
        }
        finals: dict[str, dict[str, FinalRecord]] = {}
        for identity, name, content, blob in self._rows("SELECT identity, evaluation, content, outcomes FROM finals"):
            record = FinalRecord(identity=identity, evaluation=name, outcomes=unpack(blob), **self._json(content))
            finals.setdefault(identity, {})[name] = record
        return Records(epochs=epochs, runs=runs, finals=finals)

    def rows(self) -> int:
        """How many rows carry a hash."""
        return sum(self._rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("epochs", "runs", "finals"))

    def damage(self) -> list[str]:
        """What is wrong with the stored rows: one line each, none when all is well."""
        found = [str(row[0]) for row in self._rows("PRAGMA integrity_check") if row[0] != "ok"]
        checks = {
            "epochs": "trajectory || ' epoch ' || epoch, sha256, trajectory, CAST(epoch AS TEXT), content",
            "runs": "identity, sha256, identity, trajectory, content",
            "finals": "identity || ' ' || evaluation, sha256, identity, evaluation, content, outcomes",
        }
        for table, columns in checks.items():
            for name, sha256, *content in self._rows(f"SELECT {columns} FROM {table}"):
                if _hash(*content) != sha256:
                    found.append(f"{self.path}: table {table}, {name}: its content is not what was stored")
        return found

    def _rows(self, query: str) -> list[Any]:
        with _readable(self.path):
            return self._connection.execute(query).fetchall()

    def _json(self, content: str) -> Mapping[str, Any]:
        try:
            return json.loads(content)  # type: ignore[no-any-return]
        except ValueError:
            raise TiebreakError(f"{self.path}: a damaged row; `tiebreak check` names it") from None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise TiebreakError(f"{path}: {error}; restore it from a copy, or give another --out folder") from None

"""The store: one SQLite file per results folder. One writer (the driver); readers never block it.

WAL with synchronous=FULL and BEGIN IMMEDIATE: a committed transaction survives `kill -9` and a power cut. Every row of
a record carries the sha256 of its content: a changed row is never used, and `tiebreak check` names it. The writer
compares the identity of the file with that of the file it opened: a study whose store was removed stops at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeVar

from tiebreak.errors import TiebreakError
from tiebreak.results.connection import (
    WAIT,
    DamagedStoreError,
    closed_on_error,
    connect,
    connect_reader,
    file_identity,
    log_of,
    readable,
    readable_rows,
)
from tiebreak.results.migration import HASHED, check_tables, create_tables, header_problem, row_hash, schema_of
from tiebreak.results.packing import pack
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FileRecord,
    FinalRecord,
    LookRecord,
    Records,
    RunRecord,
    StepTimes,
    TrainingState,
)
from tiebreak.results.row_decoding import Decoder, row_content
from tiebreak.results.row_queries import epoch_numbers, older_checkpoints
from tiebreak.results.seal import seal_problem, unseal
from tiebreak.text import number_of, printable

STORE_FILE = "records.sqlite"
ARRAY_BYTES = 1 << 30  # of all arrays that a store is read with, and UNPACKED times the file's size more
UNPACKED = 16

Record = TypeVar("Record")


class Store:
    """Records of a folder. Open it with `Store.create` to write or `Store.open` to read."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._opened: tuple[int, int] | None = None  # device and inode of the file; only of a writer
        self.schema = schema_of(path, connection)
        check_tables(path, connection, self.schema)

    @classmethod
    def create(cls, folder: Path) -> Store:
        """The folder's store for its one writer; created if it does not exist."""
        path = folder / STORE_FILE
        unseal(path)
        with readable(path):
            connection = connect(path)
            with closed_on_error(connection):
                store = cls(path, connection)
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                store._opened = file_identity(path)
                with store.transaction():
                    create_tables(path, connection)
                store.schema = schema_of(path, connection)
        return store

    @classmethod
    def open(cls, folder: Path, wait: float = WAIT) -> Store:
        """The folder's store, for reading only. The folder may be read-only too.

        `wait`: seconds for another program that holds it; the writer never does.
        """
        path = folder / STORE_FILE
        if not path.is_file():
            raise TiebreakError(f"{folder}: no {STORE_FILE}; is this the --out folder of `tiebreak run`?")
        with readable(path):
            connection = connect_reader(path, wait)
            with closed_on_error(connection):
                store = cls(path, connection)
                connection.execute("SELECT count(*) FROM runs")
        return store

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
        """All or nothing. IMMEDIATE: a writer waits at the start, never fails in the middle. DEFERRED: for readers."""
        self.check_identity()
        with readable(self.path):
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        self.check_identity()

    def check_identity(self) -> None:
        """Stop if the file was removed or replaced: what is written to the open one is lost."""
        if self._opened is None or file_identity(self.path) == self._opened:
            return
        try:  # of the file that is still open
            runs, epochs = (self._rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("runs", "epochs"))
            lost = f"its records ({number_of(runs, 'ended run')}, {number_of(epochs, 'epoch')}) are lost"
        except DamagedStoreError:
            lost = "its records are lost"
        raise TiebreakError(
            f"{self.path}: removed or replaced while the study was running: {lost}; run the same command to train again"
        )

    def add_epoch(self, record: EpochRecord) -> None:
        """Store an epoch. One that is stored already stays: it came from the same trajectory."""
        content = row_content({"metrics": dict(record.metrics), "seconds": dict(record.seconds)})
        sha256 = row_hash(record.trajectory, record.epoch, content)
        row = (record.trajectory, record.epoch, content, sha256)
        self._connection.execute("INSERT OR IGNORE INTO epochs VALUES (?, ?, ?, ?)", row)

    def replace_epochs(self, records: Sequence[EpochRecord]) -> None:
        """Store all epochs of a program's run; those of an earlier attempt are removed."""
        for trajectory in {record.trajectory for record in records}:
            self._connection.execute("DELETE FROM epochs WHERE trajectory = ?", (trajectory,))
        for record in records:
            self.add_epoch(record)

    def add_checkpoint(self, record: CheckpointRecord) -> None:
        """Store where a checkpoint is."""
        row = (record.identity, record.trajectory, record.epoch, record.file, record.sha256)
        self._connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", (*row, row_hash(*row)))

    def drop_checkpoint(self, record: CheckpointRecord) -> None:
        """Remove the row of a checkpoint that is no longer needed."""
        key = (record.identity, record.epoch)
        self._connection.execute("DELETE FROM checkpoints WHERE identity = ? AND epoch = ?", key)

    def add_run(self, record: RunRecord) -> None:
        """Store how a run ended. It replaces the record of a failed attempt; a failure replaces no other record."""
        if record.status == "failed" and self._has_result(record.identity):
            return
        fields = ("status", "epoch", "reason", "provenance")
        output = {"output": record.output} if record.output else {}  # only of a program that failed
        content = row_content({name: getattr(record, name) for name in fields} | output)
        row = (record.identity, record.trajectory, content, row_hash(record.identity, record.trajectory, content))
        self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", row)

    def _has_result(self, identity: str) -> bool:
        """Whether an intact record says that the run is done or has diverged."""
        rows = self._rows("SELECT * FROM runs WHERE identity = ?", (identity,))
        intact = [content for *content, sha256 in rows if row_hash(*content) == sha256]
        return any(run.status != "failed" for run in self._decoded("runs", self._decoder().run, intact))

    def add_final(self, record: FinalRecord) -> None:
        """Store one evaluation on the test split."""
        content = row_content({"metrics": dict(record.metrics), "seconds": record.seconds})
        outcomes = pack(record.outcomes)
        sha256 = row_hash(record.identity, record.evaluation, content, outcomes)
        row = (record.identity, record.evaluation, content, outcomes, sha256)
        self._connection.execute("INSERT OR REPLACE INTO finals VALUES (?, ?, ?, ?, ?)", row)

    def add_exhibit(self, record: ExhibitRecord) -> None:
        """Store an exhibit of a run."""
        arrays = pack(record.arrays)
        row = (record.identity, record.name, arrays, row_hash(record.identity, record.name, arrays))
        self._connection.execute("INSERT OR REPLACE INTO exhibits VALUES (?, ?, ?, ?)", row)

    def add_choice(self, choice: Choice) -> None:
        """Store the strategy of a cohort on a device."""
        self._add_of_cohort("strategies", choice)

    def add_step_times(self, times: StepTimes) -> None:
        """Store the times of a cohort's steps on a device."""
        self._add_of_cohort("step_times", times)

    def _add_of_cohort(self, table: str, measured: Choice | StepTimes) -> None:
        fields = asdict(measured)
        cohort, device = fields.pop("cohort"), fields.pop("device")
        content = row_content(fields)
        row = (cohort, device, content, row_hash(cohort, device, content))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", row)

    def add_look(self, look: LookRecord) -> None:
        """Store a look at the study. One that is stored already stays."""
        pairs = {"pairs": dict(look.pairs)} if look.pairs else {}
        content = row_content({"end": look.end, "runs": look.runs, **pairs})
        key = row_hash(*look.runs, *(f"{name} {count}" for name, count in pairs.get("pairs", {}).items()))
        row = (key, look.seeds, content, row_hash(key, look.seeds, content))
        self._connection.execute("INSERT OR IGNORE INTO looks VALUES (?, ?, ?, ?)", row)

    def set_file(self, record: FileRecord) -> None:
        """Store the digest of a file of the folder."""
        row = (record.name, record.sha256, record.pending)
        self._connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", (*row, row_hash(*row)))

    def files(self) -> dict[str, FileRecord]:
        """The digests of the folder's files, by name. A store of schema 1 has none."""
        rows, _ = self._verified("files")
        return {record.name: record for record in self._decoded("files", self._decoder().file, rows)}

    def looks(self) -> tuple[LookRecord, ...]:
        """The looks at the study, in the order in which they were made. A store of schema 1 or 2 has none."""
        rows, _ = self._verified("looks")
        return tuple(self._decoded("looks", self._decoder().look, rows))

    def choices(self) -> dict[tuple[str, str], Choice]:
        """The strategies of cohorts, by cohort and device."""
        rows, _ = self._verified("strategies")
        return {(item.cohort, item.device): item for item in self._decoded("strategies", self._decoder().choice, rows)}

    def step_times(self) -> dict[tuple[str, str], StepTimes]:
        """The times of steps alone, by cohort and device. A store of schema 1 to 3 has none."""
        found = self._decoded("step_times", self._decoder().step_times, self._verified("step_times")[0])
        return {(item.cohort, item.device): item for item in found}

    def checkpoints(self, identities: Collection[str] | None = None) -> list[CheckpointRecord]:
        """Every checkpoint, or those of some runs."""
        only = "" if identities is None else f"WHERE identity IN ({', '.join('?' * len(identities))})"
        rows, _ = self._verified("checkpoints", only, identities or ())
        return self._decoded("checkpoints", self._decoder().checkpoint, rows)

    def superfluous_checkpoints(self, newest: Sequence[CheckpointRecord], kept: int) -> list[CheckpointRecord]:
        """The checkpoints of runs, each up to its newest one, without the last `kept`."""
        rows = older_checkpoints(self._rows, newest, kept)
        return self._decoded("checkpoints", self._decoder().checkpoint, rows)

    def records(self) -> Records:
        """Everything else, as of one moment. Rows that are damaged are left out and named in `damaged`."""
        with nullcontext() if self._connection.in_transaction else self.transaction("DEFERRED"):
            rows, damaged = self._verified_tables("epochs", "runs", "finals", "exhibits", "looks")
            choices, step_times = self.choices(), self.step_times()
        decoder = self._decoder()
        epochs: dict[str, dict[int, EpochRecord]] = {}
        for epoch in self._decoded("epochs", decoder.epoch, rows["epochs"]):
            epochs.setdefault(epoch.trajectory, {})[epoch.epoch] = epoch
        runs = {run.identity: run for run in self._decoded("runs", decoder.run, rows["runs"])}
        finals: dict[str, dict[str, FinalRecord]] = {}
        for final in self._decoded("finals", decoder.final, rows["finals"]):
            finals.setdefault(final.identity, {})[final.evaluation] = final
        exhibits: dict[str, dict[str, ExhibitRecord]] = {}
        for shown in self._decoded("exhibits", decoder.exhibit, rows["exhibits"]):
            exhibits.setdefault(shown.identity, {})[shown.name] = shown
        looks = tuple(self._decoded("looks", decoder.look, rows["looks"]))
        return Records(
            epochs=epochs,
            runs=runs,
            finals=finals,
            exhibits=exhibits,
            choices=choices,
            step_times=step_times,
            looks=looks,
            damaged=damaged,
        )

    def training_state(self) -> TrainingState:
        """Which runs have ended and which epochs are there, as of one moment. Epochs are counted, not read."""
        with self.transaction("DEFERRED"):
            rows, damaged = self._verified("runs")
            epochs, choices = epoch_numbers(self._rows), self.choices()
        runs = {run.identity: run for run in self._decoded("runs", self._decoder().run, rows)}
        return TrainingState(runs=runs, epochs=epochs, choices=choices, damaged=tuple(damaged))

    def rows_from(self, table: str, first: int) -> tuple[list[Any], int]:
        """The rows of a table from a rowid on, with their rowid in front and unchecked, and how many it has in all."""
        rows = self._rows(f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid >= {first:d} ORDER BY rowid")
        return rows, self._rows(f"SELECT count(*) FROM {table}")[0][0]

    def rows(self) -> int:
        """How many rows carry a hash."""
        return sum(self._rows(f"SELECT count(*) FROM {table}")[0][0] for table in self._tables())

    def file_damage(self) -> list[str]:
        """The problems of the file itself, one line each."""
        checked = [" ".join(row[0].split()) for row in self._rows("PRAGMA integrity_check")]
        lines = [line for line in (*checked, header_problem(self._connection), self._cut()) if line not in ("ok", "")]
        found = [f"{self.path}: damaged: {line}" for line in lines]
        return found or [line for line in (seal_problem(self.path),) if line]

    def _cut(self) -> str:
        """Whether the end of the file is missing: SQLite does not notice where the last page is empty."""
        pages, size = (self._rows(f"PRAGMA {name}")[0][0] for name in ("page_count", "page_size"))
        log = log_of(self.path)
        if log.exists() and log.stat().st_size:
            return ""  # pages may be in the log only
        return "" if self.path.stat().st_size >= pages * size else "its end is missing"

    def damage(self) -> list[str]:
        """The problems of the file and of the stored rows, one line each."""
        return self.file_damage() + [line for table in self._tables() for line in self._verified(table)[1]]

    def set_aside(self) -> list[str]:
        """Move every damaged row to the table `damaged`, in the current transaction. A line for each."""
        found = []
        for table in self._tables():
            for rowid, *content, sha256 in readable_rows(self._connection, table)[0]:
                if row_hash(*content) != sha256:
                    self._connection.execute("INSERT INTO damaged VALUES (?, ?)", (table, repr([*content, sha256])))
                    self._connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
                    if table == "exhibits":  # those of one run are made together
                        self._connection.execute("DELETE FROM exhibits WHERE identity = ?", (content[0],))
                    found.append(self._damaged_row(table, content))
        return found

    def drop_run(self, identity: str) -> None:
        """Remove how a run ended, so that it is trained again."""
        self._connection.execute("DELETE FROM runs WHERE identity = ?", (identity,))

    def copy_rows(self, source: sqlite3.Connection) -> int:
        """Take over the readable rows of a damaged store, in the current transaction. How many of them are intact.

        Exhibits that cannot all be read are left out: those of one run belong together, and they can be made again.
        """
        count = 0
        for table in self._tables():
            width = len(self._rows(f"PRAGMA table_info({table})"))
            found, problem = readable_rows(source, table)
            rows = [] if problem and table == "exhibits" else [list(row[1:]) for row in found]
            if table == "checkpoints":  # those of schema 1 have no hash
                rows = [[*row, row_hash(*row)] if len(row) == width - 1 else row for row in rows]
            rows = [row for row in rows if len(row) == width]
            rows.sort(key=lambda row: row_hash(*row[:-1]) != row[-1])  # intact rows first; `set_aside` takes the others
            places = ", ".join("?" * width)
            self._connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)
            count += sum(row_hash(*row[:-1]) == row[-1] for row in rows)
        return count

    def _tables(self) -> list[str]:
        """The tables whose rows carry a hash, without those that an older folder does not have."""
        there = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return [table for table in HASHED[self.schema] if table in there]

    def _verified_tables(self, *tables: str) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
        """The rows of some tables, and a line for each that is damaged."""
        found = {table: self._verified(table) for table in tables}
        damaged = tuple(line for _, lines in found.values() for line in lines)
        return {table: rows for table, (rows, _) in found.items()}, damaged

    def _verified(self, table: str, only: str = "", values: Collection[str] = ()) -> tuple[list[Any], list[str]]:
        """The rows of a table without their hashes, which are checked, and a line for each that is damaged."""
        newer = table not in HASHED[self.schema] and table != "checkpoints"
        if newer or (self.schema == 1 and table != "checkpoints" and table not in self._tables()):
            return [], []
        order = "rowid" if table == "looks" else "1, 2"
        try:
            rows = self._rows(f"SELECT * FROM {table} {only} ORDER BY {order}", values)
            damaged = []
        except DamagedStoreError:
            read, problem = readable_rows(self._connection, table)
            rows = [row[1:] for row in read if not only or row[1] in values]
            damaged = [f"{self.path}: table {table}: {problem}: some of its rows cannot be read"] if problem else []
        if table not in HASHED[self.schema]:
            return [list(row) for row in rows], damaged
        good = []
        for *content, sha256 in rows:
            if row_hash(*content) == sha256:
                good.append(content)
            else:
                damaged.append(self._damaged_row(table, content))
        return good, damaged

    def _decoder(self) -> Decoder:
        return Decoder(ARRAY_BYTES + UNPACKED * self.path.stat().st_size, str(self.path))

    def _decoded(self, table: str, decode: Callable[..., Record], rows: Collection[Any]) -> list[Record]:
        """A record of each row; one line where a row is none, though it is as it was written."""
        found = []
        for row in rows:
            try:
                found.append(decode(*row))
            except ValueError as error:
                name = printable(f"{row[0]} {row[1]}")[:80]
                raise TiebreakError(f"{self.path}: table {table}, {name}: not a record of Tiebreak: {error}") from None
        return found

    def _damaged_row(self, table: str, content: Sequence[object]) -> str:
        name = printable(f"{content[0]} {content[1]}")[:80]
        lost = "; that verdict no longer counts as a look" if table == "looks" else ""
        return f"{self.path}: table {table}, {name}: damaged: its content is not what was stored{lost}"

    def _rows(self, query: str, values: Collection[str | int] = ()) -> list[Any]:
        with readable(self.path):
            return self._connection.execute(query, tuple(values)).fetchall()

"""The tables of the store, their version, and how a store of an older version becomes one of this.

| schema | what it added                                                                                    |
|--------|--------------------------------------------------------------------------------------------------|
| 1      | epochs, runs, finals, exhibits, strategies with a hash in each row; checkpoints without           |
| 2      | a hash in each row of checkpoints; `files`: the sha256 of study.toml, plan.json and others;        |
|        | `damaged`: rows that were set aside; the version a second time, as SQLite's application id         |
| 3      | `looks`: the verdicts that were made on all runs of so many seeds                                  |
| 4      | `step_times`: training steps of the arms alone, timed in turns, and their memory                   |
"""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.results.connection import RECOVERY, DamagedStoreError
from tiebreak.results.store_limits import changed_table, refuse_programs

SCHEMA_VERSION = 4
APPLICATION = 0x54420000  # plus the version: a flipped bit in either number is noticed
TABLES = """
CREATE TABLE IF NOT EXISTS epochs (trajectory TEXT, epoch INTEGER, content TEXT, sha256 TEXT,
    PRIMARY KEY (trajectory, epoch));
CREATE TABLE IF NOT EXISTS runs (identity TEXT PRIMARY KEY, trajectory TEXT, content TEXT, sha256 TEXT);
CREATE TABLE IF NOT EXISTS finals (identity TEXT, evaluation TEXT, content TEXT, outcomes BLOB, sha256 TEXT,
    PRIMARY KEY (identity, evaluation));
CREATE TABLE IF NOT EXISTS exhibits (identity TEXT, name TEXT, arrays BLOB, sha256 TEXT, PRIMARY KEY (identity, name));
CREATE TABLE IF NOT EXISTS checkpoints (identity TEXT, trajectory TEXT, epoch INTEGER, file TEXT, sha256 TEXT,
    row_sha256 TEXT, PRIMARY KEY (identity, epoch));
CREATE TABLE IF NOT EXISTS strategies (cohort TEXT, device TEXT, content TEXT, sha256 TEXT,
    PRIMARY KEY (cohort, device));
CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, sha256 TEXT, pending TEXT, row_sha256 TEXT);
CREATE TABLE IF NOT EXISTS looks (runs TEXT, seeds INTEGER, content TEXT, sha256 TEXT, PRIMARY KEY (runs, seeds));
CREATE TABLE IF NOT EXISTS step_times (cohort TEXT, device TEXT, content TEXT, sha256 TEXT,
    PRIMARY KEY (cohort, device));
CREATE TABLE IF NOT EXISTS damaged (source TEXT, content TEXT);
"""
# Tables whose last column is the hash of the others, by the schema that introduced it.
HASHED = {
    1: ("epochs", "runs", "finals", "exhibits", "strategies"),
    2: ("epochs", "runs", "finals", "exhibits", "strategies", "checkpoints", "files"),
    3: ("epochs", "runs", "finals", "exhibits", "strategies", "checkpoints", "files", "looks"),
    4: ("epochs", "runs", "finals", "exhibits", "strategies", "checkpoints", "files", "looks", "step_times"),
}

_HEADER = ("user_version", "application_id")


def row_hash(*parts: object) -> str:
    """The hash that a row carries of its other columns."""
    hasher = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()


def schema_of(path: Path, connection: sqlite3.Connection) -> int:
    """The version of a store, 0 for a new file. One of another program version is refused."""
    version, application = _numbers(connection)
    if application == APPLICATION + SCHEMA_VERSION != APPLICATION + version:
        raise DamagedStoreError(f"{path}: damaged: its header has schema {version}, not {SCHEMA_VERSION}; {RECOVERY}")
    if version not in (0, *HASHED):
        raise TiebreakError(
            f"{path}: written by another version of Tiebreak (schema {version}; this one reads {SCHEMA_VERSION}); "
            "use that version, or give another --out folder"
        )
    return int(version)


def check_tables(path: Path, connection: sqlite3.Connection, schema: int) -> None:
    """Raise unless the store holds plain tables only, and ours have their columns."""
    refuse_programs(path, connection)
    lacking = {"checkpoints": ("row_sha256",)} if schema == 1 else {}
    if table := changed_table(connection, TABLES, lacking):
        raise DamagedStoreError(f"{path}: damaged: table {table} has other columns than Tiebreak's; {RECOVERY}")


def header_problem(connection: sqlite3.Connection) -> str:
    """What is wrong with the version numbers of a store that can be read."""
    version, application = _numbers(connection)
    expected = APPLICATION + version if version >= 2 else 0
    return "" if application == expected else f"its application id is {application}, not {expected}"


def create_tables(path: Path, connection: sqlite3.Connection) -> None:
    """Make the tables, or bring those of an older schema up to date; to be called inside a transaction."""
    old = schema_of(path, connection) == 1
    if old:
        columns = "identity, trajectory, epoch, file, sha256"
        rows = connection.execute(f"SELECT rowid, {columns} FROM checkpoints").fetchall()
        connection.execute("ALTER TABLE checkpoints ADD COLUMN row_sha256 TEXT")
        connection.executemany(
            "UPDATE checkpoints SET row_sha256 = ? WHERE rowid = ?", [(row_hash(*row[1:]), row[0]) for row in rows]
        )
    for statement in TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.execute(f"PRAGMA application_id={APPLICATION + SCHEMA_VERSION}")


def _numbers(connection: sqlite3.Connection) -> tuple[int, int]:
    """The version and the application id in the header."""
    version, application = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _HEADER)
    return version, application

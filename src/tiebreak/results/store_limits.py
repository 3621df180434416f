"""What keeps a store that a stranger made from doing harm: no links, plain tables only, limits of time and size.

A SQLite file is a program as well as data: views, triggers and computed columns run when a table is read, and a journal
beside it may name any file to be deleted.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.files import inside
from tiebreak.text import printable

LIMIT_VALUE = 256 << 20  # bytes of one value
LIMIT_SECONDS = 20.0  # of one statement, and a second more for every SLOW_DISK bytes of the file
SLOW_DISK = 10 << 20
STEPS = 100_000  # of SQLite's machine between two looks at the clock: milliseconds
SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # a journal that ends so names another file, which SQLite deletes
DISTRUST = "do not trust this folder"


class LimitedConnection(sqlite3.Connection):
    """A connection whose statements are interrupted after `limit_seconds`."""

    limit_seconds = LIMIT_SECONDS
    _deadline = float("inf")

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As always, but the clock starts anew."""
        self._deadline = time.monotonic() + self.limit_seconds
        return super().execute(sql, parameters)

    def is_late(self) -> bool:
        """Whether the statement has had its time."""
        return time.monotonic() > self._deadline


def limit(connection: LimitedConnection, size: int) -> None:
    """Set the limits of a connection to a file of so many bytes."""
    connection.limit_seconds += size / SLOW_DISK
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LIMIT_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_progress_handler(connection.is_late, STEPS)
    connection.execute("PRAGMA trusted_schema=OFF")  # no function of a schema runs
    connection.execute("PRAGMA cell_size_check=ON")


def check_store_files(path: Path) -> None:
    """Raise where a store, or what SQLite keeps beside it, is a link or no file, or names a further file to delete."""
    for ending in ("", "-wal", "-shm", "-journal"):
        inside(path.parent, path.name + ending)
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        with journal.open("rb") as file:
            file.seek(max(0, journal.stat().st_size - len(SUPER_JOURNAL)))
            if file.read() == SUPER_JOURNAL:
                raise TiebreakError(f"{journal}: names a further file to delete: {DISTRUST}")


def refuse_programs(path: Path, connection: sqlite3.Connection) -> None:
    """Raise where the file holds views, triggers or virtual tables: Tiebreak makes none, and they run when read."""
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        virtual = str(sql).upper().split()[:2] == ["CREATE", "VIRTUAL"]
        if kind in ("view", "trigger") or virtual:
            what = "virtual table" if virtual else kind
            raise TiebreakError(f"{path}: holds the {what} {printable(name)!r}, which Tiebreak never makes: {DISTRUST}")


def changed_table(
    connection: sqlite3.Connection, tables: str, lacking: Mapping[str, Collection[str]] | None = None
) -> str:
    """The first table whose columns are not those that the statements `tables` make; empty if there is none.

    `lacking`: columns that a table of an older schema does not have.
    """
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(tables)
        for (table,) in model.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            found, without = _columns(connection, table), (lacking or {}).get(table, ())
            if found and found != [column for column in _columns(model, table) if column[0] not in without]:
                return str(table)
    return ""


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, int]]:
    """The names of a table's columns, and whether each is computed."""
    return [(row[1], row[6]) for row in connection.execute(f"PRAGMA table_xinfo({table})")]

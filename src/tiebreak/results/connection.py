"""SQLite connections to a store: for its writer, for readers, and for readers of a folder that cannot be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError

# SQLite's primary result codes for a file that is damaged. ERROR: our statements fail only where the schema is damaged.
DAMAGE = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOTADB,
)


class DamagedStoreError(TiebreakError):
    """SQLite cannot read the file, or a part of it."""


def connect(path: Path, options: str = "") -> sqlite3.Connection:
    """A connection to the file; `options` are those of a SQLite URI."""
    address = f"{path.absolute().as_uri()}?{options}" if options else path
    return _configured(sqlite3.connect(address, isolation_level=None, timeout=30, uri=bool(options)))


def _configured(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = lambda raw: raw.decode(errors="replace")  # damaged text is read too, to be named
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection for reading. SQLite writes files beside the store; where it cannot, the store is read without them.

    A read-only folder may hold a write-ahead log that a killed run left: then a copy of both is read.
    """
    if writable(path):
        connection = connect(path)
        connection.execute("PRAGMA query_only=ON")
        return connection
    log = log_of(path)
    if not log.is_file() or not log.stat().st_size:
        return connect(path, "immutable=1")
    memory = _configured(sqlite3.connect(":memory:", isolation_level=None))
    with tempfile.TemporaryDirectory() as place:
        for each in (path, log):
            shutil.copyfile(each, Path(place) / each.name)
        with closing(connect(Path(place) / path.name)) as copy:
            copy.backup(memory)
    return memory


def log_of(path: Path) -> Path:
    """The write-ahead log of a store."""
    return path.with_name(f"{path.name}-wal")


def writable(path: Path) -> bool:
    """Whether SQLite may write the store and files beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """SQLite's errors as one clear line."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        read_only = code == sqlite3.SQLITE_READONLY
        if code in DAMAGE or (read_only and writable(path)):  # read-only by its damaged header
            line = f"{path}: damaged: {error}; `tiebreak run` with your study sets it aside and recovers what it can"
            raise DamagedStoreError(line) from None
        advice = "the folder cannot be written" if read_only else "give a folder that can be written with --out"
        raise TiebreakError(f"{path}: {error}; {advice}") from None


def readable_rows(connection: sqlite3.Connection, table: str) -> tuple[list[tuple[Any, ...]], str]:
    """Every row of a table that can be read, with its rowid in front, and SQLite's error if some cannot.

    Where a page is damaged, the rows before it and, from the other end, those behind it are read.
    """
    found: dict[int, tuple[Any, ...]] = {}
    problem = ""
    for order in ("ASC", "DESC"):
        try:
            for row in connection.execute(f"SELECT rowid, * FROM {table} NOT INDEXED ORDER BY rowid {order}"):
                found.setdefault(row[0], row)
        except sqlite3.Error as error:
            problem = str(error)
        else:
            break
    return [found[rowid] for rowid in sorted(found)], problem

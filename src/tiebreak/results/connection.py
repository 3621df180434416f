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
from tiebreak.files import failure
from tiebreak.results.store_limits import DISTRUST, LIMIT_VALUE, LimitedConnection, check_store_files, limit

WAIT = 30.0  # seconds for another program that holds the store
RECOVERY = "`tiebreak run` with your study sets it aside and recovers what it can"
# SQLite's primary result codes for a file that is damaged. ERROR: our statements fail only where the schema is damaged.
DAMAGE = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOTADB,
)
ADVICE = {  # by SQLite's primary result codes for other causes
    sqlite3.SQLITE_FULL: "the disk is full: make room",
    sqlite3.SQLITE_IOERR: "is the disk or your quota full? If not, the disk may be failing: copy the folder elsewhere",
    sqlite3.SQLITE_READONLY: "the folder cannot be written: change the permissions, or give another --out folder",
    sqlite3.SQLITE_PERM: "change the permissions, or give another --out folder",
    sqlite3.SQLITE_BUSY: "another program holds it: wait for it, then try again",
    sqlite3.SQLITE_LOCKED: "another program holds it: wait for it, then try again",
    sqlite3.SQLITE_INTERRUPT: f"reading it took too long for records of Tiebreak: {DISTRUST}",
    sqlite3.SQLITE_TOOBIG: f"a value has more than {LIMIT_VALUE:,} bytes: {DISTRUST}",
}


class DamagedStoreError(TiebreakError):
    """SQLite cannot read the file, or a part of it."""


def connect(path: Path, options: str = "", wait: float = WAIT) -> sqlite3.Connection:
    """A connection to the file; `options` are those of a SQLite URI."""
    check_store_files(path)
    address = f"{path.absolute().as_uri()}?{options}" if options else path
    return _connected(address, path.stat().st_size if path.exists() else 0, uri=bool(options), wait=wait)


def _connected(address: str | Path, size: int, *, uri: bool = False, wait: float = WAIT) -> LimitedConnection:
    connection = sqlite3.connect(address, isolation_level=None, timeout=wait, uri=uri, factory=LimitedConnection)
    limit(connection, size)
    connection.text_factory = lambda raw: raw.decode(errors="replace")  # damaged text is read too, to be named
    return connection


def connect_reader(path: Path, wait: float = WAIT) -> sqlite3.Connection:
    """A connection for reading. SQLite writes files beside the store; where it cannot, the store is read without them.

    A write-ahead log that a killed run left stays as it is, for `heal` to look at; in a read-only folder a copy of it
    and of the store is read.
    """
    log = log_of(path)
    logged = log.is_file() and log.stat().st_size > 0
    if writable(path):
        connection = connect(path, "mode=ro" if logged else "", wait)  # closing any other would remove the log
        connection.execute("PRAGMA query_only=ON")
        return connection
    if not logged:
        return connect(path, "immutable=1")
    memory = _connected(":memory:", path.stat().st_size)
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


def file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close the connection if the block fails."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the file system as one clear line."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        read_only = code == sqlite3.SQLITE_READONLY
        if code in DAMAGE or (read_only and writable(path)):  # read-only by its damaged header
            raise DamagedStoreError(f"{path}: damaged: {error}; {RECOVERY}") from None
        if code == sqlite3.SQLITE_CANTOPEN:
            _explain_opening(path)
        advice = ADVICE.get(code, "give a folder that can be written with --out")
        raise TiebreakError(f"{path}: {error}; {advice}") from None
    except UnicodeDecodeError:  # SQLite quotes a damaged name in its message
        raise DamagedStoreError(f"{path}: damaged: {RECOVERY}") from None
    except OSError as error:
        raise failure(path, "cannot be opened", error) from None


def _explain_opening(path: Path) -> None:
    """Open the file as SQLite tried to: the system's reason is clearer than SQLite's."""
    try:
        with path.open("r+b"):
            pass
    except FileNotFoundError:
        raise TiebreakError(f"{path}: cannot be made; give a folder that can be written with --out") from None
    except OSError as error:
        raise failure(path, "cannot be opened", error) from None


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

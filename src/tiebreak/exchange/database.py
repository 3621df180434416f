"""Sqlite files of other tools: whose they are, and a copy to read, since a library may change what it opens."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from tiebreak.errors import TiebreakError
from tiebreak.files import check_regular, failure
from tiebreak.text import one_line

HEADER = b"SQLite format 3\0"
LIMIT_BYTES = 4 << 30
OWNERS = {"optuna": {"studies", "trials", "trial_values"}, "mlflow": {"experiments", "runs", "latest_metrics"}}


def is_database(path: Path) -> bool:
    """Whether the file begins like one of sqlite."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError as error:
        raise failure(path, "", error) from None


def owner(path: Path) -> str:
    """`optuna` or `mlflow`, by the tables of the database."""
    with copied(path) as copy:
        tables = _tables(path, copy)
    found = [name for name, needed in OWNERS.items() if needed <= tables]
    if not found:
        raise TiebreakError(f"{path}: a database, but neither of MLflow nor of Optuna")
    return found[0]


def _tables(path: Path, copy: Path) -> set[str]:
    """The names of the tables. Views are refused: they are programs that reading runs, and may never end."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(copy))}?mode=ro", uri=True)) as database:
            parts = database.execute("select type, name from sqlite_master").fetchall()
    except sqlite3.Error as error:
        raise TiebreakError(f"{path}: a damaged database ({one_line(error, 200)})") from None
    if views := [name for kind, name in parts if kind == "view"]:
        raise TiebreakError(f"{path}: has the view {one_line(views[0], 40)!r}, which neither MLflow nor Optuna makes")
    return {name for kind, name in parts if kind == "table"}


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    """A copy of a database with its write-ahead log, in a folder that is removed afterwards."""
    check_regular(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        try:
            if path.stat().st_size > LIMIT_BYTES:
                raise TiebreakError(f"{path}: larger than the limit of {LIMIT_BYTES:,} bytes; export a part of it")
            shutil.copyfile(path, copy)
            log = path.with_name(path.name + "-wal")
            if log.is_file():
                shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
        except OSError as error:
            raise failure(path, "cannot be read", error) from None
        _tables(path, copy)
        yield copy

"""A results folder that a stranger made: commands on it touch nothing outside it, and say why in one line."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cli_fixtures import Finished, Tiebreak
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.heal import DAMAGED, REBUILT
from tiebreak.results.lock import LOCK_FILE
from tiebreak.results.migration import row_hash
from tiebreak.results.packing import pack, unpack
from tiebreak.results.seal import SEAL_FILE
from tiebreak.results.store import STORE_FILE

FILES = ("plan.json", "study.toml", "verdict.json", "report.html", "report.md", "designs.py")
FOLDERS = ("report.html", LOCK_FILE, STORE_FILE, CHECKPOINTS)  # what a link to a folder takes the place of
NAMES = (*FILES, LOCK_FILE, STORE_FILE, f"{STORE_FILE}-wal", CHECKPOINTS, SEAL_FILE, DAMAGED, REBUILT)


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    """What must stay as it is."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("letter.txt", "photo.jpg"):
        (home / name).write_text(name)
    return home


def content(home: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in home.iterdir()}


def commands(finished: Finished, folder: Path) -> list[tuple[object, ...]]:
    run = finished._replace(folder=folder).again()
    return [(*run, "--strategy", "loop"), *((name, folder) for name in ("status", "verdict", "check", "report"))]


def query(folder: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        return connection.execute(sql, values).fetchall()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "target"), [*((name, "letter.txt") for name in NAMES), *((name, ".") for name in FOLDERS)]
)
def test_links_in_the_folder_harm_nothing(
    finished: Finished,
    folder: Path,
    home: Path,
    tiebreak: Tiebreak,
    name: str,
    target: str,
) -> None:
    before, path = content(home), folder / name
    if path.is_dir():
        path.rename(folder / "old")
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(home / target)
    for command in commands(finished, folder):
        done = tiebreak(*command)
        assert done.code in (0, 2), done.err
        assert "Traceback" not in done.err
        assert content(home) == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("file", ["../../home/letter.txt", "{home}/letter.txt", "..", None, b"x"])
def test_a_row_of_checkpoints_names_no_other_file(
    finished: Finished,
    folder: Path,
    home: Path,
    tiebreak: Tiebreak,
    file: Any,
) -> None:
    before = content(home)
    name = file.format(home=home) if isinstance(file, str) else file
    ((identity, trajectory),) = query(folder, "SELECT identity, trajectory FROM runs LIMIT 1")
    query(folder, "DELETE FROM runs WHERE identity = ?", identity)
    sha256 = hashlib.sha256(before["letter.txt"].encode()).hexdigest()
    row = (identity, trajectory, 0, name, sha256)
    query(folder, "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", *row, row_hash(*row))
    for command in commands(finished, folder):
        done = tiebreak(*command)
        assert "Traceback" not in done.err
        assert content(home) == before
    assert done.code in (0, 2)


def test_pipes_in_the_folder_are_not_waited_for(
    finished: Finished,
    folder: Path,
    tiebreak: Tiebreak,
) -> None:
    for name in ("verdict.json", "report.html", "plan.json", "study.toml", STORE_FILE):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        for command in ("status", "verdict", "check", "report"):
            done = tiebreak(command, folder)
            assert done.code in (0, 2)
            assert "Traceback" not in done.err


def test_the_designs_of_a_folder_are_those_in_it(
    folder: Path,
    home: Path,
    tiebreak: Tiebreak,
) -> None:
    (home / "evil.py").write_text("raise SystemExit('run')\n")
    query(folder, "DELETE FROM files")  # a stranger can make digests, too
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(f'designs_from = "{home}/evil.py"\n{text}')
    done = tiebreak("status", folder)
    assert done.code == 2
    assert "designs_from" in done.err


def rewrite(folder: Path, table: str, column: int, change: Callable[[Any], Any]) -> None:
    """Change a column of every row, and the hash with it."""
    for row in query(folder, f"SELECT * FROM {table}"):
        content = list(row[:-1])
        content[column] = change(content[column])
        marks = ", ".join("?" * len(row))
        query(folder, f"INSERT OR REPLACE INTO {table} VALUES ({marks})", *content, row_hash(*content))


def emptied(key: str) -> Callable[[str], str]:
    return lambda content: json.dumps({**json.loads(content), key: {}})


def arrays(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    return lambda content: pack({name: change(array) for name, array in unpack(content).items()})


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [
        ("finals", 2, emptied("metrics")),
        ("runs", 2, lambda content: content.replace('"runs": "', '"runs": "x')),  # of the provenance
        ("epochs", 2, emptied("metrics")),
        ("epochs", 2, emptied("seconds")),
        ("finals", 3, arrays(lambda array: np.zeros((2, 3)))),
        ("finals", 3, arrays(lambda array: np.array(["a", "b"]))),
        ("finals", 3, arrays(lambda array: np.array(1.0))),
        ("finals", 3, arrays(lambda array: array[:0])),
        ("exhibits", 2, arrays(lambda array: np.array(["a", "b"]))),
        ("exhibits", 2, arrays(lambda array: np.array(1))),
        ("exhibits", 2, arrays(lambda array: np.full(array.shape, np.nan))),
        ("exhibits", 2, arrays(lambda array: array[:1])),
    ],
)
def test_records_of_another_form_are_one_line(
    folder: Path, tiebreak: Tiebreak, table: str, column: int, change: Callable[[Any], Any]
) -> None:
    rewrite(folder, table, column, change)
    for command in ("status", "verdict", "check", "report"):
        done = tiebreak(command, folder)
        assert done.code in (0, 2)
        assert "Traceback" not in done.err
        assert len(done.err.splitlines()) <= 2

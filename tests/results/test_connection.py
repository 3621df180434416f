"""Readers of a folder that cannot be written, and rows of a table with a damaged page."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support.cli_fixtures import Finished, Tiebreak
from support.hand_made import EPOCH, RUN
from tiebreak.errors import TiebreakError
from tiebreak.results import connection
from tiebreak.results.connection import DamagedStoreError, connect, readable, readable_rows
from tiebreak.results.store import STORE_FILE, Store


@contextmanager
def read_only(folder: Path, place: Path) -> Iterator[Path]:
    """The folder on a medium that is mounted read-only; root may write everywhere else."""
    place.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting is not allowed here")
    try:
        shutil.copytree(folder, place / "out")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        yield place / "out"
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_read_only_folder_is_read(finished: Finished, tiebreak: Tiebreak, tmp_path: Path) -> None:
    with read_only(finished.folder, tmp_path / "medium") as folder:
        for command in ("status", "verdict", "check"):
            done = tiebreak(command, folder)
            assert (done.code, done.err) == (0, "")
        done = tiebreak("report", folder)
        assert done.code == 2
        assert "--out" in done.err
        done = tiebreak("report", folder, "--out", tmp_path / "elsewhere")
        assert (done.code, done.err) == (0, "")
        done = tiebreak("run", finished.study, "--data-dir", finished.data, "--out", folder)
        assert done.code == 2
        assert done.err.count("\n") == 1
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} == {"report.html", "report.md"}


def test_a_log_that_a_killed_run_left_is_read_in_a_read_only_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copy").mkdir()
    with closing(Store.create(tmp_path)) as store:
        with store.transaction():
            store.add_epoch(EPOCH)
            store.add_run(RUN)
        for path in tmp_path.glob(f"{STORE_FILE}*"):  # as a kill would leave it
            if not path.name.endswith("-shm"):
                shutil.copy(path, tmp_path / "copy")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    before = sorted(path.name for path in (tmp_path / "copy").iterdir())
    assert before == [STORE_FILE, f"{STORE_FILE}-wal"]
    with closing(Store.open(tmp_path / "copy")) as reader:
        assert reader.records().runs == {"run": RUN}
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == before


def test_rows_before_and_behind_a_damaged_page_are_read(tmp_path: Path) -> None:
    path = tmp_path / "some.sqlite"
    with closing(connect(path)) as made:
        made.execute("CREATE TABLE things (content TEXT)")
        made.executemany("INSERT INTO things VALUES (?)", [(f"{row:04} " * 200,) for row in range(40)])
    content = bytearray(path.read_bytes())
    place = content.index(b"0020 0020") // 4096 * 4096
    content[place : place + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    with closing(connect(path)) as opened:
        rows, problem = readable_rows(opened, "things")
    assert problem
    numbers = [row[0] for row in rows]
    assert numbers == sorted(numbers)
    assert {1, 40} <= set(numbers) < set(range(1, 41))
    assert len(numbers) >= 30


def test_damage_is_told_from_other_errors(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database" * 100)
    with pytest.raises(DamagedStoreError, match="text: damaged"), readable(tmp_path / "text"):
        connect(tmp_path / "text").execute("SELECT * FROM sqlite_master")
    with pytest.raises(TiebreakError, match="--out") as caught, readable(tmp_path / "no" / "where"):
        connect(tmp_path / "no" / "where")
    assert not isinstance(caught.value, DamagedStoreError)
    assert connection.writable(tmp_path / "text")

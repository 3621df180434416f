"""What a run at work says of itself: believed only while its process works in this very folder."""

from __future__ import annotations

import time
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.results.live_progress import (
    LIVE_FILE,
    MOST_BYTES,
    SILENCE,
    LiveCohort,
    LiveProgress,
    read_live,
    remove_live,
    write_live,
)


def test_what_is_written_is_read_until_it_is_removed(tmp_path: Path) -> None:
    assert read_live(tmp_path) is None
    cohorts = (LiveCohort(name="cnn", epochs_left=0.5, seconds_left=3.0),)
    progress = LiveProgress.here(tmp_path).model_copy(update={"rate": 2.5, "cohorts": cohorts})
    write_live(tmp_path, progress)
    assert read_live(tmp_path) == progress
    assert [path.name for path in tmp_path.iterdir()] == [LIVE_FILE]
    remove_live(tmp_path)
    remove_live(tmp_path)
    assert read_live(tmp_path) is None


def test_a_copy_of_the_folder_is_not_at_work(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_live(tmp_path / "out", LiveProgress.here(tmp_path / "out"))
    assert read_live(copytree(tmp_path / "out", tmp_path / "copy")) is None


@pytest.mark.parametrize(
    ("changes", "alive"),
    [
        ({"process": 2**22 + 1}, False),
        ({"started": 1.0, "updated": time.time() - 2 * SILENCE}, False),  # another process has its number
        ({"started": 1.0}, True),  # or the clock was set
        ({"host": "node7"}, True),  # which cannot be asked, but has just written
        ({"host": "node7", "updated": time.time() - 2 * SILENCE}, False),
    ],
)
def test_a_process_that_is_no_more_is_not_believed(tmp_path: Path, changes: dict[str, Any], alive: bool) -> None:
    write_live(tmp_path, LiveProgress.here(tmp_path).model_copy(update=changes))
    assert (read_live(tmp_path) is not None) == alive


@pytest.mark.parametrize("content", ["", "{", "[]", '{"process": "x"}', "x" * (MOST_BYTES + 1)])
def test_a_file_that_is_none_of_ours_is_no_run(tmp_path: Path, content: str) -> None:
    (tmp_path / LIVE_FILE).write_text(content)
    assert read_live(tmp_path) is None


def test_links_of_a_stranger_are_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out" / f"{LIVE_FILE}.part").symlink_to(tmp_path / "precious")
    with pytest.raises(TiebreakError, match="symbolic link"):
        write_live(tmp_path / "out", LiveProgress.here(tmp_path / "out"))
    assert (tmp_path / "precious").read_text() == "mine"

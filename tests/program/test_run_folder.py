"""The files of a run: found again, earlier results removed, output cut to its last lines, leftovers ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.program.run_folder import RUN_VARIABLE, TAIL_LINES, RunFolder


def test_the_folder_is_given_again_without_earlier_scores(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run")
    folder.prepare("scores.json", None)
    for name in ("scores.json", "state"):
        (folder.out / name).write_text("x")
    folder.log.write_text("first attempt\n")
    start = folder.prepare("scores.json", None)
    assert [path.name for path in folder.out.iterdir()] == ["state"]
    assert folder.tail(start) == ""
    with folder.log.open("a") as log:
        log.write("progress 1\rprogress 2\n\x1b[31mred\n" + "line\n" * 30)
    assert folder.tail(start).splitlines() == ["line"] * TAIL_LINES
    assert "\x1b" not in folder.tail(0)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "program-runs").mkdir()
    (tmp_path / "program-runs" / "run").symlink_to(tmp_path)
    with pytest.raises(TiebreakError, match="symbolic link"):
        RunFolder(tmp_path, "run").prepare()


def test_what_a_program_may_leave_in_the_place_of_its_files(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run")
    folder.prepare()
    (folder.out / "scores.json").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "scores.json").write_text("the user's")
    (folder.out / "link").symlink_to(tmp_path / "mine")
    start = folder.prepare("scores.json", "link/scores.json", "none/scores.json")
    assert (tmp_path / "mine" / "scores.json").read_text() == "the user's"
    folder.log.unlink()
    assert "cannot be read" in folder.tail(start)
    folder.log.symlink_to(tmp_path / "mine" / "scores.json")
    assert "the user" not in folder.tail(0)
    folder.log.unlink()
    os.mkfifo(folder.log)
    with pytest.raises(TiebreakError, match="regular file"):
        folder.prepare()


def test_whatever_a_program_left_or_removed_the_study_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run")
    folder.prepare("scores.json", "logs/scores.json")
    (folder.out / "scores.json").mkdir()
    (folder.out / "scores.json" / "part").write_text("x")
    (tmp_path / "scores.json").write_text("somebody's")
    (folder.out / "logs").symlink_to(tmp_path)
    start = folder.prepare("scores.json", "logs/scores.json")
    assert [path.name for path in folder.out.iterdir()] == ["logs"]
    assert (tmp_path / "scores.json").read_text() == "somebody's"
    folder.log.unlink()
    assert "cannot be read" in folder.tail(start)


def test_what_is_left_of_a_killed_command_is_ended(tmp_path: Path) -> None:
    folder, other = RunFolder(tmp_path, "run"), RunFolder(tmp_path, "other")
    for each in (folder, other):
        each.prepare()
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(command, env={**os.environ, RUN_VARIABLE: str(folder.out)}) as process:
        other.process_file.write_text(str(process.pid))
        assert not other.end_leftover()  # the number alone says nothing
        assert process.poll() is None
        assert not folder.end_leftover()  # no file: the run had ended
        folder.process_file.write_text("")
        assert folder.end_leftover()
        assert process.wait(30) is not None
    assert not folder.process_file.exists()

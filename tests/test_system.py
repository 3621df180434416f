from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tiebreak
from tiebreak.system import python


def test_files_in_the_current_folder_do_not_take_the_place_of_libraries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("json.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong file')\n")
    monkeypatch.chdir(tmp_path)
    command = python("tiebreak.drive.worker")
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    without = [part for part in command if part != "-P"]
    assert subprocess.run(without, input="", capture_output=True, check=False).returncode == 1


def test_in_the_folder_of_the_package_itself_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tiebreak.__file__).resolve().parent.parent
    monkeypatch.chdir(folder)
    assert python("tiebreak.x") == [sys.executable, "-m", "tiebreak.x"]

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiebreak import files
from tiebreak.errors import TiebreakError

TOO_LARGE = """
import resource, sys
from pathlib import Path
from tiebreak import files
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    files.write(Path(sys.argv[1]), b"new" * 1000)
except ValueError as error:
    print(error)
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from tiebreak import files
with files.replacing(Path(sys.argv[1])) as part:
    part.write_bytes(b"half of the new")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_text_and_bytes_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    assert files.write(path, "größer\n") == path
    assert path.read_bytes() == "größer\n".encode()
    files.write(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old")

    def interrupted() -> None:
        with files.replacing(path) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_is_there_until_the_block_ends(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old")
    with files.replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old") / "below" / "deeper"
    with pytest.raises(TiebreakError) as caught:
        files.write(path, "new")
    assert str(caught.value) == f"{path}: cannot be written: Not a directory"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old")
    done = subprocess.run([sys.executable, "-c", TOO_LARGE, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: cannot be written: File too large\n"
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old")
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -9
    assert path.read_text() == "old"
    files.write(path, "new")
    assert path.read_text() == "new"

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.results.lock import LOCK_FILE, locked

HOLD = """
import sys
from pathlib import Path
from tiebreak.results.lock import locked
with locked(Path(sys.argv[1]), lambda text: print("told:", text, flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that wants the folder, and keeps it until its standard input ends."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.mark.parametrize("kept", [False, True])
def test_a_new_folder_in_which_nothing_came_of_it_goes_again(tmp_path: Path, kept: bool) -> None:
    folder = tmp_path / "out"

    def fail() -> None:
        if kept:
            (folder / "plan.json").touch()
        raise TiebreakError("no data")

    with pytest.raises(TiebreakError, match="no data"), locked(folder, print):
        fail()
    assert folder.exists() is kept


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="no data"), locked(tmp_path, print):
        raise TiebreakError("no data")
    assert tmp_path.exists()


def test_a_free_folder_is_made_and_held_without_a_word(tmp_path: Path) -> None:
    told: list[str] = []
    with locked(tmp_path / "a" / "b", told.append):
        assert (tmp_path / "a" / "b" / LOCK_FILE).is_file()
    with locked(tmp_path / "a" / "b", told.append):
        pass
    assert told == []


def test_a_second_process_says_so_and_waits_until_the_first_ends(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with locked(tmp_path, pytest.fail):
            second = stack.enter_context(holder(tmp_path))
            assert said(second).startswith(f"told: another tiebreak works in {tmp_path}; waiting")
            assert second.poll() is None
        assert said(second) == "held"


def test_the_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        assert said(first) == "held"
        with holder(tmp_path) as second:
            assert said(second).startswith(f"told: another tiebreak works in {tmp_path}; waiting")
            first.kill()
            assert said(second) == "held"


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    folder, target = tmp_path / "out", tmp_path / "target"
    folder.mkdir()
    (folder / LOCK_FILE).symlink_to(target)

    def wants() -> None:
        with locked(folder, pytest.fail):
            pass

    with pytest.raises(TiebreakError, match=LOCK_FILE):
        wants()
    assert not target.exists()


def test_an_error_in_the_block_releases_the_lock(tmp_path: Path) -> None:
    def fails() -> None:
        with locked(tmp_path, pytest.fail):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    with locked(tmp_path, pytest.fail):
        pass


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    def wants() -> None:
        with locked(tmp_path / "file" / "below", pytest.fail):
            pass

    with pytest.raises(TiebreakError, match=r"Not a directory.*--out"):
        wants()


def test_a_file_in_the_place_of_the_folder_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    def wants() -> None:
        with locked(tmp_path / "file", pytest.fail):
            pass

    with pytest.raises(TiebreakError, match=r"file: a file, not a folder.*--out"):
        wants()


def test_a_file_of_the_user_in_the_place_of_the_lock_keeps_its_content(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("dear")
    folder = tmp_path / "out"
    folder.mkdir()

    def wants() -> None:
        with locked(folder, pytest.fail):
            pass

    for put in ((folder / LOCK_FILE).symlink_to, (folder / LOCK_FILE).hardlink_to):
        put(letter)
        with pytest.raises(TiebreakError, match=LOCK_FILE):
            wants()
        assert letter.read_text() == "dear"
        (folder / LOCK_FILE).unlink()

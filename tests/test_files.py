from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
    assert str(caught.value).startswith(f"{path}: ")
    assert "Not a directory" in str(caught.value)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old")
    done = subprocess.run([sys.executable, "-c", TOO_LARGE, path], capture_output=True, text=True, check=True)
    assert f"{path}: " in done.stdout
    assert "File too large" in done.stdout
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", "old")
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -9
    assert path.read_text() == "old"
    files.write(path, "new")
    assert path.read_text() == "new"


TEXT = st.text(st.characters(exclude_characters="\r\0\ufeff", codec="utf-8"))


@given(text=TEXT, mark=st.booleans(), packed=st.booleans(), ending=st.sampled_from(["\n", "\r\n", "\r"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_text_is_read_whatever_its_line_ends_mark_and_packing(
    text: str, mark: bool, packed: bool, ending: str, tmp_path: Path
) -> None:
    content = b"\xef\xbb\xbf" * mark + text.replace("\n", ending).encode()
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert files.read_text(path) == text


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", b"one\ntwo\0", "line 2: a NUL byte"),
        ("a.txt", b"one\ntwo\n\xff", "line 3: not UTF-8 text (byte 8)"),
        ("a.txt", b"x" * 101, "100 bytes"),
        ("a.gz", gzip.compress(b"x" * 10_000, mtime=0), "100 bytes"),
        ("a.gz", b"not gzip", "damaged gzip file"),
        ("a.gz", gzip.compress(b"x" * 90, mtime=0)[:-9], "damaged gzip file"),
        ("none.txt", None, "No such file"),
        ("folder", b"", "Is a directory"),
    ],
    ids=["NUL", "not UTF-8", "large", "unpacks to more", "not gzip", "cut", "missing", "folder"],
)
def test_what_is_no_text_is_one_line(name: str, content: bytes | None, problem: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / name
    if content:
        path.write_bytes(content)
    with pytest.raises(TiebreakError) as caught:
        files.read_text(path, limit=100)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert problem in line
    assert line.isprintable()


def test_bytes_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\0\r\n\xff")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\0\r\n\xff"))
    assert files.read_bytes(tmp_path / "a") == files.read_bytes(tmp_path / "a.gz", limit=4) == b"\0\r\n\xff"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_may_not_be_entered_is_one_line(tmp_path: Path) -> None:
    assert not files.is_file(tmp_path / "none")
    (tmp_path / "shut").mkdir(0)
    try:
        with pytest.raises(TiebreakError, match="Permission denied"):
            files.is_file(tmp_path / "shut" / "a")
    finally:
        (tmp_path / "shut").chmod(0o700)


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "/a", "a/b", "a\\b", "a\0b", "./a"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TiebreakError, match="not the name of a file"):
        files.inside(tmp_path, name)
    with pytest.raises(TiebreakError, match="not the name of a file"):
        files.inside(tmp_path, "sub", name, links=True)


@given(name=st.text())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_name_the_path_stays_in_the_folder(tmp_path: Path, name: str) -> None:
    try:
        path = files.inside(tmp_path, name)
    except (TiebreakError, UnicodeEncodeError):
        return
    assert path.resolve().parent == tmp_path.resolve()


def test_links_on_the_way_are_refused_unless_allowed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("a")
    (tmp_path / "sub").symlink_to(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    for names in (("sub", "a"), ("link",), ("dangling",)):
        with pytest.raises(TiebreakError, match="symbolic link"):
            files.inside(tmp_path, *names)
    assert files.inside(tmp_path, "link", links=True).read_text() == "a"
    assert files.inside(tmp_path, "real", "a") == tmp_path / "real" / "a"
    assert files.inside(tmp_path, "new") == tmp_path / "new"


def test_pipes_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(TiebreakError, match="not a regular file"):
            files.read_bytes(tmp_path / name)
    with pytest.raises(TiebreakError, match="NUL"):
        files.read_text(tmp_path / "a\0b")


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("ENOSPC", "make room"),
        ("EDQUOT", "quota"),
        ("ENAMETOOLONG", "shorter"),
        ("EACCES", "permissions"),
        ("EROFS", "read-only"),
        ("EIO", "from a copy"),
    ],
)
def test_the_advice_fits_the_cause(code: str, word: str) -> None:
    number = getattr(errno, code)
    line = str(files.failure(Path("a\x1b"), "cannot be read", OSError(number, os.strerror(number)), "from a copy"))
    assert word in line
    assert ("from a copy" in line) == (code == "EIO")
    assert line.isprintable()


def test_a_place_that_cannot_be_written_is_known_before_the_work(tmp_path: Path) -> None:
    files.check_place(tmp_path / "new" / "page.html")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "page.html"):
        with pytest.raises(TiebreakError, match=f"{place}: cannot be written"):
            files.check_place(place)

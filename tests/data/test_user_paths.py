"""A user's own data, found by its path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiebreak.data import families
from tiebreak.data.user_paths import check_file, find_user_path
from tiebreak.errors import TiebreakError
from tiebreak.study.registry import is_path

pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["a/b", "./a", "/a", "a/", "a\\b", "a.npz", "..", ".", "~/a"])
def test_a_path_is_known_by_its_form(name: str) -> None:
    assert is_path(name)


@pytest.mark.parametrize("name", ["mnist", "octmnits", "npz", "a.npz.zip", "", "a.b", "kuzushiji-kanji10", "..."])
def test_a_name_is_no_path(name: str) -> None:
    assert not is_path(name)


def test_a_file_is_found_from_here_then_from_the_data_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_file = tmp_path / "own.npz"
    own_file.touch()
    for folder in ("data", "more"):
        (tmp_path / folder).mkdir()
    assert find_user_path("own.npz") == Path("own.npz")
    own_file.rename(tmp_path / "data" / "own.npz")
    assert find_user_path("own.npz", tmp_path / "data") == tmp_path / "data" / "own.npz"
    assert find_user_path("data/own.npz") == Path("data/own.npz")
    monkeypatch.setenv("TIEBREAK_DATA", "data")
    assert find_user_path("own.npz", tmp_path / "more") == Path("data/own.npz")
    monkeypatch.setenv("HOME", str(tmp_path / "data"))
    assert find_user_path("~/own.npz") == tmp_path / "data" / "own.npz"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("./own", "./own: no such file or folder"),
        ("a\n/b", "a /b: no such file or folder"),
        ("a\0/b", "a\\x00/b: no such file or folder"),
        ("/dev/null", "/dev/null: neither a file nor a folder"),
        ("./" + "x" * 300, "File name too long"),
    ],
    ids=["nothing", "newline", "null", "device", "too long"],
)
@pytest.mark.parametrize("family", sorted(families.MODULES))
def test_a_path_to_nothing_is_the_same_line_in_every_family(family: str, name: str, problem: str) -> None:
    for function in (families.checksum, families.load):
        with pytest.raises(TiebreakError) as caught:
            function(family, name, None)
        assert problem in str(caught.value)
        assert str(caught.value).isprintable()


def test_a_link_to_itself_or_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("nowhere")
    for name in ("./loop", "./lost"):
        with pytest.raises(TiebreakError, match=f"{name}: a link"):
            find_user_path(name)
    (tmp_path / "real").touch()
    (tmp_path / "good").symlink_to("real")
    assert find_user_path("./good") == Path("good")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("folder", [False, True])
def test_what_may_not_be_read(folder: bool, tmp_path: Path) -> None:
    path = tmp_path / "own"
    path.mkdir() if folder else path.touch()
    path.chmod(0)
    try:
        with pytest.raises(TiebreakError, match=r"\./own: .*Permission denied"):
            find_user_path("./own")
    finally:
        path.chmod(0o700)


def test_a_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert check_file(tmp_path / "file", "hint") == tmp_path / "file"
    with pytest.raises(TiebreakError, match=r"a folder.*; hint$"):
        check_file(tmp_path, "hint")
    with pytest.raises(TiebreakError, match=r"none: no such file$"):
        check_file(tmp_path / "none")

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tiebreak.data import fetch as fetching
from tiebreak.data.fetch import Checked, cache_dir, file_checksum, joint_checksum, locate, search_path, verify
from tiebreak.data.sources import SOURCES, RemoteFile, Source
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_search_path_order(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_path() == [empty_cache]
    monkeypatch.setenv("TIEBREAK_DATA", "~/data")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert search_path(tmp_path) == [tmp_path, tmp_path / "data", empty_cache]


def test_search_path_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"--data-dir .*nowhere: no such folder"):
        search_path(tmp_path / "nowhere")


def test_cache_dir_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIEBREAK_CACHE")
    assert "tiebreak" in cache_dir().parts
    assert cache_dir().is_absolute()


def test_locate_prefers_the_subfolder_then_the_next_folder(
    tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for path in (mine / "mnist.npz", theirs / "mnist" / "mnist.npz", empty_cache / "mnist.npz"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setenv("TIEBREAK_DATA", str(theirs))
    assert locate("mnist", mine) == {"mnist.npz": mine / "mnist.npz"}
    assert locate("mnist") == {"mnist.npz": theirs / "mnist" / "mnist.npz"}
    monkeypatch.delenv("TIEBREAK_DATA")
    assert locate("mnist") == {"mnist.npz": empty_cache / "mnist.npz"}
    (mine / "mnist").mkdir()
    (mine / "mnist" / "mnist.npz").touch()
    assert locate("mnist", mine) == {"mnist.npz": mine / "mnist" / "mnist.npz"}


def test_locate_says_where_it_looked_and_what_to_do(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(TiebreakError) as caught:
        locate("octmnist", tmp_path)
    line = str(caught.value)
    for part in (
        "octmnist.npz",
        str(tmp_path),
        str(empty_cache),
        "`tiebreak data fetch octmnist`",
        "--data-dir",
        "--quick",
    ):
        assert part in line
    assert "\n" not in line


def test_unknown_name() -> None:
    with pytest.raises(TiebreakError, match="did you mean 'octmnist'"):
        locate("octmnits")


def test_embedded_data_has_no_files() -> None:
    assert locate("mnist5k") == {}
    assert verify("mnist5k") == {}


def test_verify_marks_your_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = b"the same in another layout"
    file = RemoteFile(
        filename="toy.npz",
        address="https://example.org/toy.npz",
        checksum="md5:900150983cd24fb0d6963f7d28e17f72",
        accepted=(f"sha256:{sha256(other)}",),
    )
    toy = Source(name="toy", files=(file,), licence="none", citation="none")
    monkeypatch.setattr(fetching, "SOURCES", {**SOURCES, "toy": toy})
    path = tmp_path / "toy.npz"
    for content, official in ((b"abc", True), (other, True), (b"mine", False)):
        path.write_bytes(content)
        checked = verify("toy", tmp_path)["toy.npz"]
        assert (checked.path, checked.sha256, checked.official) == (path, sha256(content), official)


def test_file_checksum(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert file_checksum(path, "md5") == "900150983cd24fb0d6963f7d28e17f72"
    assert file_checksum(path) == sha256(b"abc")
    with pytest.raises(TiebreakError, match="cannot be read"):
        file_checksum(tmp_path)


def test_a_subfolder_may_be_written_with_underscores(tmp_path: Path) -> None:
    path = tmp_path / "kuzushiji_kanji10" / "kuzushiji_kanji10.npz"
    path.parent.mkdir()
    path.touch()
    assert locate("kuzushiji-kanji10", tmp_path) == {path.name: path}


def test_the_checksum_of_several_files_is_that_of_their_list() -> None:
    one, two = (Checked(path=Path(name), sha256=sha256(name.encode()), official=True) for name in "ab")
    assert joint_checksum({"a": one}) == one.sha256
    both = joint_checksum({"a": one, "b": two})
    assert both == joint_checksum({"b": two, "a": one}) == sha256(f"{one.sha256}  a\n{two.sha256}  b\n".encode())
    assert both != joint_checksum({"a": two, "b": one})

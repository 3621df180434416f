from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tiebreak.data import checksums
from tiebreak.data.checksums import file_checksum, load_checksums, save_checksums
from tiebreak.errors import TiebreakError


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_known", {})


@pytest.fixture(name="reads")
def _reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read to be hashed."""
    digest, names = hashlib.file_digest, list[str]()

    def counted(file: object, algorithm: object) -> object:
        names.append(Path(file.name).name)  # type: ignore[attr-defined]
        return digest(file, algorithm)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", counted)
    return names


def old_file(path: Path, content: bytes = b"content") -> Path:
    """A file that was modified an hour ago."""
    path.write_bytes(content)
    past = path.stat().st_mtime - 3600
    os.utime(path, (past, past))
    return path


def test_a_checksum_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = old_file(tmp_path / "a")
    for _ in range(2):
        assert file_checksum(path) == hashlib.sha256(b"content").hexdigest()
        assert file_checksum(path, "md5") == hashlib.md5(b"content", usedforsecurity=False).hexdigest()


def test_an_unchanged_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    path = old_file(tmp_path / "a")
    assert len({file_checksum(path) for _ in range(3)}) == 1
    assert reads == ["a"]


def test_a_changed_file_is_read_again_though_size_and_time_are_as_before(tmp_path: Path, reads: list[str]) -> None:
    path = old_file(tmp_path / "a")
    before, stamp = file_checksum(path), path.stat()
    while True:  # until the clock of the file system has moved on
        path.write_bytes(b"changed")
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        if path.stat().st_ctime_ns != stamp.st_ctime_ns:
            break
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stamp.st_size, stamp.st_mtime_ns)
    assert file_checksum(path) == hashlib.sha256(b"changed").hexdigest() != before
    assert reads == ["a", "a"]


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")
    os.utime(path, (path.stat().st_mtime + 3600,) * 2)  # never old enough, however slow this machine is
    file_checksum(path)
    file_checksum(path)
    assert reads == ["a", "a"]


def test_another_process_takes_over_what_was_hashed(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_file(tmp_path / os.fsdecode(b"n\xe9e"))
    expected = file_checksum(path)
    save_checksums(tmp_path / "saved.json")
    monkeypatch.setattr(checksums, "_known", {})
    load_checksums(tmp_path / "saved.json")
    assert file_checksum(path) == expected
    assert len(reads) == 1
    old_file(path, b"other content")
    assert file_checksum(path) == hashlib.sha256(b"other content").hexdigest()


def test_without_the_file_everything_is_hashed_again(tmp_path: Path) -> None:
    load_checksums(tmp_path / "gone.json")
    assert file_checksum(old_file(tmp_path / "a")) == hashlib.sha256(b"content").hexdigest()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="gone: cannot be read"):
        file_checksum(tmp_path / "gone")

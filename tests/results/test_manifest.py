from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import pytest

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.results.manifest import (
    file_problems,
    is_module_name,
    is_recorded,
    require,
    require_folder_file,
    write_files,
)
from tiebreak.results.record import FileRecord
from tiebreak.results.store import Store

OLD, NEW = {"plan.json": "old", "study.toml": "name"}, {"plan.json": "new"}


def found(folder: Path) -> dict[str, str]:
    with closing(Store.open(folder)) as store:
        return file_problems(store, folder)


def test_files_are_written_with_their_digests(tmp_path: Path) -> None:
    write_files(tmp_path, OLD)
    assert (tmp_path / "plan.json").read_text() == "old"
    assert found(tmp_path) == {}
    assert is_recorded(tmp_path, *OLD)
    assert not is_recorded(tmp_path, "plan.json", "verdict.json")
    with closing(Store.open(tmp_path)) as store:
        digest = hashlib.sha256(b"old").hexdigest()
        assert store.files()["plan.json"] == FileRecord(name="plan.json", sha256=digest)


@pytest.mark.parametrize(
    "name", ["../x.py", "/x.py", "a//x.py", "a\\x.py", "x.txt", ".py", "a/.py", "a/../x.py", "a b.py"]
)
def test_only_modules_below_the_folder_are_modules(name: str) -> None:
    assert not is_module_name(name)
    assert is_module_name("x.py")
    assert is_module_name("a/b/__init__.py")


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    write_files(tmp_path, OLD)
    before = (tmp_path / "plan.json").stat().st_ino
    write_files(tmp_path, OLD)
    assert (tmp_path / "plan.json").stat().st_ino == before
    (tmp_path / "plan.json").write_text("edited")
    write_files(tmp_path, OLD)
    assert (tmp_path / "plan.json").read_text() == "old"


@pytest.mark.parametrize("written", [False, True], ids=["before the file", "after the file"])
@pytest.mark.parametrize("first", [False, True], ids=["replaced", "new"])
def test_a_kill_at_any_moment_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool, first: bool
) -> None:
    write = files.write

    def killed(path: Path, content: str | bytes) -> Path:
        if written:
            write(path, content)
        raise KeyboardInterrupt

    if not first:
        write_files(tmp_path, OLD)
    monkeypatch.setattr(files, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, NEW)
    assert found(tmp_path) == {}
    monkeypatch.undo()
    write_files(tmp_path, NEW)
    assert found(tmp_path) == {}
    assert (tmp_path / "plan.json").read_text() == "new"


def test_changed_and_missing_files_are_refused_by_name(tmp_path: Path) -> None:
    write_files(tmp_path, OLD)
    (tmp_path / "plan.json").write_text("olb")
    (tmp_path / "study.toml").unlink()
    problems = found(tmp_path)
    assert "plan.json: damaged or edited" in problems["plan.json"]
    assert "study.toml: missing" in problems["study.toml"]
    with closing(Store.open(tmp_path)) as store:
        with pytest.raises(TiebreakError, match=r"plan\.json"):
            require(store, tmp_path, ["plan.json"])
        require(store, tmp_path, ["verdict.json"])
    with pytest.raises(TiebreakError, match="edit your own file"):
        require_folder_file(tmp_path / "study.toml")
    require_folder_file(tmp_path / "mine.toml")
    require_folder_file(tmp_path / "nowhere" / "study.toml")


def test_a_name_that_leads_out_of_the_folder_is_not_looked_at(tmp_path: Path) -> None:
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.set_file(FileRecord(name="../victim.txt", sha256="ab" * 32))
    assert found(tmp_path) == {}

"""Which files a program's runs are named by."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.plan import program_files
from tiebreak.plan.program_files import ProgramFiles


def test_files_of_a_command_and_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import model\nimport json\n")
    (tmp_path / "model.py").write_text("x = 1\n")
    (tmp_path / "conf.yaml").write_text("a: 1\n")
    (tmp_path / "data").mkdir()
    found = ProgramFiles(tmp_path).of_command(["python", "train.py", "--config=conf.yaml", "data", "--lr", "0.1"])
    assert sorted(found) == ["conf.yaml", "model.py", "train.py"]
    (tmp_path / "model.py").write_text("x = 2\n")
    again = ProgramFiles(tmp_path).of_command(["python", "train.py", "--config=conf.yaml"])
    assert {name for name in found if found[name] != again[name]} == {"model.py"}


def test_what_is_not_hashed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files, "MOST_BYTES", 10)
    (tmp_path / "large.bin").write_bytes(b"x" * 11)
    (tmp_path / "b.py").write_text("def (")
    found = ProgramFiles(tmp_path)
    assert list(found.of_command(["large.bin", "b.py", "x" * 5000, "a\0b"])) == ["b.py"]
    assert {"large.bin", "what b.py imports"} == set(found.skipped)


def test_a_module_of_functions(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "mod.py").write_text("x = 1\n")
    assert list(ProgramFiles(tmp_path).of_module("pkg.mod")) == ["pkg/mod.py"]
    with pytest.raises(TiebreakError, match=r"pkg\.no"):
        ProgramFiles(tmp_path).of_module("pkg.no")

"""`tiebreak studies` and `tiebreak new`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_fixtures import Tiebreak, one_line
from tiebreak.study.parsing import builtin_names
from tiebreak.study.schema import Study


def test_studies_are_listed_with_question_data_and_time(tiebreak: Tiebreak) -> None:
    listed = one_line(tiebreak("studies").out)
    for name in builtin_names():
        study = Study.load(name)
        assert f"{name} {study.question}" in listed
        assert study.about.time in listed


def test_a_new_study_is_a_commented_file_that_plans(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tiebreak("new", "my-study")
    assert done.code == 0
    assert "`tiebreak plan my-study.toml`" in done.out
    text = Path("my-study.toml").read_text()
    assert "NAME" not in text
    assert text.startswith("# A study: ")
    assert Study.load("my-study.toml").name == "my-study"
    assert tiebreak("plan", "my-study.toml", "--quick").code == 0


def test_a_new_study_overwrites_nothing(tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("precious")
    done = tiebreak("new", "mine")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tiebreak: mine.toml: ")
    assert Path("mine.toml").read_text() == "precious"


@pytest.mark.parametrize("name", ["my study", "../up", 'a"\nseeds = 3', "", "x" * 61])
def test_a_name_that_is_none_is_one_line_and_nothing_written(
    name: str, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = tiebreak("new", name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tiebreak: new study: name: ")
    assert done.err.count("\n") == 1
    assert [*tmp_path.rglob("*")] == [tmp_path / "here"]

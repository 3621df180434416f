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


def test_a_new_study_may_have_every_key(tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tiebreak("new", "mine.toml", "--full").code == 0
    assert Study.load("mine.toml").name == "mine"
    assert "epochs_times" in Path("mine.toml").read_text()


def test_a_new_study_may_be_a_copy_of_a_built_in_one(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for source in builtin_names():
        assert tiebreak("new", f"my-{source}", "--from", source).code == 0
        copied, original = Study.load(f"my-{source}.toml"), Study.load(source)
        assert copied.model_copy(update={"name": source, "about": original.about}) == original
        text = Path(f"my-{source}.toml").read_text()
        assert f"tiebreak run my-{source}.toml" in text
        assert f"tiebreak run {source}" not in text


def test_a_copy_of_an_unknown_study_lists_the_built_in_ones(tiebreak: Tiebreak) -> None:
    done = tiebreak("new", "mine", "--from", "nosuch")
    assert done.code == 2
    assert all(name in done.err for name in ("--from nosuch", *builtin_names()))
    assert tiebreak("new", "mine", "--from", "pooling", "--full").code == 2

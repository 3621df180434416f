"""The results folders below a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.damage import graph_study, run_here
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.manifest import write_files
from tiebreak.results.store import Store
from tiebreak.verdict.model import VERDICT_FILE
from tiebreak.verdict.study_folders import find_studies


@pytest.fixture(name="runs")
def _runs(here: None, tmp_path: Path) -> Path:
    """A folder with one finished study in it, and another folder."""
    runs = tmp_path / "runs"
    run_here(graph_study(tmp_path / "mine.py"), runs / "graphs")
    (runs / "letters").mkdir()
    return runs


def test_a_finished_study_has_its_question_answer_runs_and_size(runs: Path) -> None:
    (found,) = find_studies(runs)
    assert (found.study, found.question, found.planned, found.ended) == ("graphs", "Do the edges help?", 2, 2)
    assert found.verdict is not None
    assert found.verdict.answer
    assert found.size == sum(path.stat().st_size for path in runs.rglob("*") if path.is_file())
    assert find_studies(runs / "graphs") == [found], "the folder itself"


def test_a_verdict_that_was_edited_or_is_of_other_runs_is_no_answer(runs: Path) -> None:
    stopped = shutil.copytree(runs / "graphs", runs / "stopped")
    (runs / "graphs" / VERDICT_FILE).write_text("{}")
    store = Store.create(stopped)
    with store.transaction():
        store.drop_run(next(iter(store.records().runs)))
    store.close()
    edited, half = find_studies(runs)
    assert (edited.verdict, edited.ended) == (None, 2)
    assert (half.verdict, half.ended) == (None, 1)


def test_a_damaged_folder_is_described_by_its_problem(runs: Path) -> None:
    (runs / "graphs" / PLAN_FILE).write_text("{}")
    (found,) = find_studies(runs)
    assert PLAN_FILE in found.problem
    assert found.size


def test_a_verdict_of_an_unknown_version_is_one_problem_among_others(runs: Path) -> None:
    shutil.copytree(runs / "graphs", runs / "later")
    write_files(runs / "later", {VERDICT_FILE: '{"of": "a later version"}'})
    good, later = find_studies(runs)
    assert good.verdict is not None
    assert VERDICT_FILE in later.problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_may_not_be_entered_is_one_problem_among_others(runs: Path) -> None:
    (runs / "letters").chmod(0)
    good, closed = find_studies(runs)
    (runs / "letters").chmod(0o700)
    assert good.verdict is not None
    assert "letters" in closed.problem


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TiebreakError, match="gone: no such folder"):
        find_studies(tmp_path / "gone")
    with pytest.raises(TiebreakError, match="file: a file"):
        find_studies(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert find_studies(tmp_path / "empty") == []

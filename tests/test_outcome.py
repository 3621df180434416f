"""The verdict on a finished folder: written once, counted once, refused where it cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.outcome import conclude, count_look, open_result
from tiebreak.results.check import check
from tiebreak.verdict.model import VERDICT_FILE, Verdict


def test_a_verdict_is_written_and_the_report_only_where_it_is_not_current(folder: Path) -> None:
    (folder / VERDICT_FILE).unlink()
    page = folder / "report.html"
    before = page.stat().st_mtime_ns
    result = conclude(folder)
    assert Verdict.read(folder) == result.verdict == open_result(folder).verdict
    assert page.stat().st_mtime_ns == before
    page.write_text("not a report")
    conclude(folder)
    assert result.verdict.question in page.read_text()
    assert check(folder).problems == []


def test_reading_writes_nothing(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    open_result(folder)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_looks_with_too_few_seeds_are_free_however_often_they_are_taken(folder: Path) -> None:
    for _ in range(2):
        count_look(folder)
        conclude(folder)
    assert open_result(folder).records.looks == ()


def test_a_folder_that_cannot_be_written_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(TiebreakError, match=r"report.*--out"):
        conclude(folder)

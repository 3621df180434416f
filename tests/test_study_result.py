"""A result in a notebook: a table of all runs, figures, the report in the browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import pytest

from support import sample_report
from tiebreak.errors import TiebreakError
from tiebreak.report.evidence import Evidence
from tiebreak.study_result import Result


def result(it: Evidence) -> Result:
    return Result(Path("somewhere"), it.study, it.plan, it.records, it.verdict)


def test_a_frame_has_the_same_rows() -> None:
    pytest.importorskip("pandas")
    it = result(sample_report.complete())
    frame = it.frame()
    assert len(frame) == len(it.rows)
    assert frame.groupby("arm")["accuracy"].mean()["pool"] > 0.5


def test_printed_it_is_one_sentence() -> None:
    it = sample_report.complete()
    assert repr(result(it)).endswith(f"{it.verdict.answer})")
    assert len(str(result(it))) < 250


def test_without_pandas_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TiebreakError, match="pip install pandas"):
        result(sample_report.empty()).frame()


def test_a_notebook_shows_the_answer_with_figures_and_opens_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    it = result(sample_report.complete())
    assert '<svg class="chart"' in it._repr_html_()
    opened: list[str] = []

    def show(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    monkeypatch.setenv("BROWSER", "firefox")
    assert it.open() == it.report
    assert opened == [it.report.resolve().as_uri()]

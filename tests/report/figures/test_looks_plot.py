"""The figure of a comparison at each look."""

from __future__ import annotations

from support.sample_report import complete
from tiebreak.report.figures.looks_plot import looks_path
from tiebreak.verdict.model import Look


def test_a_study_that_was_looked_at_once_has_none_and_others_show_each_look() -> None:
    item = complete().verdict.primary
    assert looks_path(item, name="looks") == ""
    early = Look(seeds=6, difference=0.02, low=-0.01, high=0.05, level=0.0045)
    drawn = looks_path(item.model_copy(update={"path": (early, *item.path)}), name="looks")
    assert "<svg" in drawn
    assert "-0.01 to 0.05 with 6 seeds" in drawn

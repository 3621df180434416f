from __future__ import annotations

import re
from typing import Any

import pytest

from support import sample_report
from tiebreak.report.page.meaning import meaning


def told(**changes: Any) -> str:
    return meaning([sample_report.complete().verdict.primary.model_copy(update=changes)])


def test_a_decided_accuracy_is_counted_in_examples() -> None:
    assert re.search("1,000 test examples, pool .*23 more right than strided.*whole interval", told())
    other = told(verdict="b", difference=-0.0231, low=-0.03, high=-0.01)
    assert re.search("strided .*23 more right than pool", other)
    assert "1,000" not in told(difference=0.0001, low=0.00005, high=0.0002)


@pytest.mark.parametrize("changes", [{"metric": "loss"}, {"kind": "interaction"}, {"verdict": "undecided"}])
def test_other_comparisons_are_not(changes: dict[str, Any]) -> None:
    assert "1,000" not in told(**changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"low": 0.001}, "larger than .*does not exclude a smaller"),
        ({"difference": 0.004, "low": 0.001, "high": 0.007}, "best estimate is smaller"),
        ({"verdict": "same"}, "it is smaller"),
        ({"verdict": "undecided", "low": -0.01}, "no difference at all"),
        ({"verdict": "undecided"}, "too few seeds"),
        ({"verdict": "undecided", "low": None, "high": None}, "too few runs"),
        ({"difference": None}, "too few runs"),
    ],
)
def test_every_outcome_is_held_against_the_margin(changes: dict[str, Any], expected: str) -> None:
    found = told(**changes)
    assert re.search(expected, found)
    assert "0.005" in found


def test_several_settings_have_a_margin_in_common() -> None:
    items = [item for item in sample_report.complete().verdict.comparisons if item.kind == "setting"]
    assert "smaller than 0.005" in meaning(items)

from __future__ import annotations

from typing import Any

import pytest

from support import sample_report
from tiebreak.report.page.meaning import meaning

LEAST = "0.005, the least difference that matters here"


def told(**changes: Any) -> str:
    return meaning([sample_report.complete().verdict.primary.model_copy(update=changes)])


def test_a_decided_accuracy_is_counted_in_examples() -> None:
    expected = "Of 1,000 test examples, pool gets about 23 more right than strided."
    assert told() == f"{expected} The whole interval lies beyond {LEAST}."
    other = told(verdict="b", difference=-0.0231, low=-0.03, high=-0.01)
    assert other.startswith("Of 1,000 test examples, strided gets about 23 more right than pool.")
    assert told(difference=0.0001, low=0.00005, high=0.0002).startswith("There is a difference, but")


@pytest.mark.parametrize("changes", [{"metric": "loss"}, {"kind": "interaction"}, {"verdict": "undecided"}])
def test_other_comparisons_are_not(changes: dict[str, Any]) -> None:
    assert "1,000" not in told(**changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"low": 0.001}, f"The best estimate is larger than {LEAST}, but the interval does not exclude a smaller one."),
        ({"difference": 0.004, "low": 0.001, "high": 0.007}, f"the best estimate is smaller than {LEAST}."),
        ({"verdict": "same"}, f"it is smaller than {LEAST}: choose by cost or taste."),
        ({"verdict": "undecided", "low": -0.01}, f"no difference at all as well as one larger than {LEAST}"),
        ({"verdict": "undecided"}, "There are too few seeds to settle it"),
        ({"verdict": "undecided", "low": None, "high": None}, "There are too few runs to say anything"),
        ({"difference": None}, "There are too few runs to say anything"),
    ],
)
def test_every_outcome_is_held_against_the_margin(changes: dict[str, Any], expected: str) -> None:
    assert expected in told(**changes)


def test_several_settings_have_a_margin_in_common() -> None:
    items = [item for item in sample_report.complete().verdict.comparisons if item.kind == "setting"]
    assert meaning(items).startswith("Differences smaller than 0.005 do not matter here")

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from support import sample_report
from tiebreak.report.figures import pareto
from tiebreak.verdict.model import ArmResult

SAMPLE = sample_report.complete().verdict.designs[0]


def arms(*known: tuple[float, float], **changes: Any) -> list[ArmResult]:
    """Arms of these costs and scores."""
    return [
        SAMPLE.model_copy(
            update={"name": f"arm {place}", "step_ms": cost, "mean": mean, "low": mean, "high": mean, **changes}
        )
        for place, (cost, mean) in enumerate(known)
    ]


def test_arms_that_another_beats_in_both_are_not_on_the_front() -> None:
    name, found = pareto.points(arms((1, 0.5), (2, 0.9), (3, 0.8), (4, 0.95)), "max")
    assert "timed alone" in name
    assert [point.best for point in found] == [True, True, False, True]
    assert [point.best for point in pareto.points(arms((1, 0.5), (2, 0.9), (3, 0.4)), "min")[1]] == [True, False, True]


NUMBERS = st.integers(1, 6).map(float)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=8))
def test_the_front_is_never_empty_and_beats_every_other_arm(known: list[tuple[float, float]]) -> None:
    _, found = pareto.points(arms(*known), "max")
    front = [point for point in found if point.best]
    assert bool(front) == bool(found)
    for point in found:
        assert any(best.cost <= point.cost and (best.arm.mean or 0) >= (point.arm.mean or 0) for best in front)


def test_the_cost_is_the_first_that_all_arms_have_and_in_which_they_differ() -> None:
    untimed = arms((1, 0.5), (2, 0.9), (3, 0.8), step_ms=None)
    assert pareto.points(untimed, "max") == ("", [])  # the same work and parameters
    larger = [arm.model_copy(update={"parameters": 10 * (place + 1)}) for place, arm in enumerate(untimed)]
    assert pareto.points(larger, "max")[0] == "parameters"


def test_the_plot_is_labelled_and_needs_three_arms() -> None:
    svg = pareto.pareto_plot(arms((1, 0.5), (2, 0.9), (3, 0.8)), quantity="test accuracy", goal="max")
    assert "arm 0" in str(ElementTree.fromstring(svg).get("aria-label"))
    assert "arm 2" not in str(ElementTree.fromstring(svg).get("aria-label"))
    assert pareto.pareto_plot(arms((1, 0.5), (2, 0.9)), quantity="test accuracy", goal="max") == ""

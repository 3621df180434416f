from __future__ import annotations

import doctest

import pytest

from support import sample_report
from tiebreak.report import formatting
from tiebreak.text import listed
from tiebreak.verdict.model import ClaimResult, ComparisonResult


def interaction(verdict: str) -> ComparisonResult:
    item = sample_report.complete().verdict.comparisons[-1]
    assert item.kind == "interaction"
    return item.model_copy(update={"verdict": verdict})


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(formatting).failed == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.94449, "0.944"),
        (12.345, "12.35"),
        (163.98, "164.0"),
        (3.14159e-5, "3.14e-05"),
        (0.00012, "0.00012"),
        (None, "missing"),
        (float("nan"), "missing"),
    ],
)
def test_scores_have_three_decimals_or_fewer(value: float | None, shown: str) -> None:
    assert formatting.score(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0221, "+0.022"),
        (-0.0221, "-0.022"),
        (0.0004, "+0.0004"),
        (-1.24e-6, "-1.2e-06"),
        (1e-13, "0.000"),
        (-24.0, "-24.00"),
        (None, "missing"),
    ],
)
def test_differences_carry_their_sign(value: float | None, shown: str) -> None:
    assert formatting.signed(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(59.97, "1 min 0 s"), (59.9, "59.9 s"), (3599.7, "1 h 0 min"), (200_000, "2.3 days"), (None, "missing")],
)
def test_durations_do_not_overflow_their_unit(seconds: float | None, shown: str) -> None:
    assert formatting.duration(seconds) == shown


def test_a_chance_is_never_certain_and_a_p_value_never_zero() -> None:
    assert [formatting.chance(value) for value in (1.0, 0.999, 0.5, 0.0)] == [">99 %", ">99 %", "50 %", "<1 %"]
    assert [formatting.p_value(value) for value in (0.0, 0.0123, None)] == ["<0.001", "0.012", "missing"]


def test_seeds_needed_tells_failed_from_hopeless() -> None:
    item = sample_report.complete().verdict.primary.model_copy(update={"verdict": "undecided", "seeds_needed": None})
    assert formatting.seeds_needed(item) == "no number would do"
    assert formatting.seeds_needed(item.model_copy(update={"difference": None})).startswith("none would help")


def test_a_hint_is_never_a_verdict() -> None:
    claim = ClaimResult(id="x", text="t", source=("R0",), verdict="hint", leans="holds", why="w")
    assert formatting.claim_outcome(claim) == "hint: it seems to hold"
    assert formatting.claim_outcome(claim.model_copy(update={"leans": None})) == "hint: no result yet"
    assert formatting.claim_outcome(claim.model_copy(update={"verdict": "not run here"})) == "not run here"


def test_an_interaction_has_a_larger_advantage_and_no_better_arm() -> None:
    assert formatting.outcome(interaction("a")) == "larger for pool-moved − strided-moved"
    assert formatting.outcome(interaction("b")) == "smaller for pool-moved − strided-moved"
    assert formatting.outcome(interaction("same")).endswith("are the same within ±0.005")
    assert formatting.outcome(interaction("undecided")) == "undecided"
    assert formatting.headline([interaction("b")]) == "the advantage is smaller for pool-moved − strided-moved"
    assert formatting.headline([interaction("undecided")]) == "undecided"
    assert formatting.subtraction(interaction("a")) == "(pool-moved − strided-moved) − (pool − strided)"


def test_a_question_about_settings_has_one_headline() -> None:
    items = [item for item in sample_report.complete().verdict.comparisons if item.kind == "setting"]
    assert formatting.headline(items) == "pool at lr=0.01 is not best"
    assert (
        formatting.headline([item.model_copy(update={"verdict": "a"}) for item in items]) == "pool at lr=0.01 is best"
    )
    assert formatting.headline([item.model_copy(update={"verdict": "same"}) for item in items]) == "undecided"


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((0.0, 0.0), "0.000 to 0.000"),
        ((None, 0.1), "missing"),
        ((-5e-324, 0.1), "0.000 to +0.100"),
        ((-0.1, 0.0), "-0.100 to below 0"),
        ((5e-324, 0.1), "above 0 to +0.100"),
        ((-0.1, -1e-5), "-0.100 to below 0"),
        ((1e-6, 2e-6), "+1e-06 to +2e-06"),
        ((-2e-5, -1e-7), "-2e-05 to below 0"),
    ],
)
def test_an_end_of_exactly_0_is_open(ends: tuple[float | None, float | None], shown: str) -> None:
    assert formatting.open_interval(*ends) == shown


def test_names_are_listed_as_a_reader_expects() -> None:
    assert [listed(names) for names in ([], ["a"], ["a", "b"])] == ["", "a", "a and b"]

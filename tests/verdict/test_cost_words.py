from __future__ import annotations

from typing import Any

import pytest

from tiebreak.verdict.cost_words import cost_sentence
from tiebreak.verdict.model import ArmResult, ComparisonResult


def arm(name: str, **changes: Any) -> ArmResult:
    known: dict[str, Any] = {
        "name": name, "design": name, "parameters": 1000, "flops": 2000, "setting": {}, "seeds": 5, "failed": 0,
        "missing": 0, "mean": 0.9, "sd": 0.1, "low": 0.8, "high": 1.0, "train_seconds": 1.0, "step_ms": 10.0,
    }  # fmt: skip
    return ArmResult(**(known | changes))


def comparison(verdict: str = "a", kind: str = "pair", **known: Any) -> ComparisonResult:
    absent = dict.fromkeys(
        ("difference", "low", "high", "p", "p_adjusted", "p_sign_flip", "p_a_better", "seeds_needed", "examples_low",
         "examples_high")
    )  # fmt: skip
    return ComparisonResult.model_validate(
        {"name": "x", "kind": kind, "primary": True, "a": "a", "b": "b", "sides": [], "metric": "accuracy",
         "margin": 0.1, "verdict": verdict, "seeds": 5, "sentence": "", **absent, **known}
    )  # fmt: skip


def said(verdict: str = "a", **changes: Any) -> str:
    return cost_sentence([comparison(verdict)], [arm("a", **changes), arm("b")])


@pytest.mark.parametrize(
    ("step", "words"),
    [(14.0, "40 % slower"), (7.0, "30 % faster"), (11.4, "about as fast"), (35.0, "3.5 times slower"),
     (2.5, "4 times faster"), (None, "not measured alone")],
)  # fmt: skip
def test_the_time_alone_is_compared(step: float | None, words: str) -> None:
    assert words in said(step_ms=step)


def test_the_better_arm_comes_first() -> None:
    assert said("a", step_ms=20.0).startswith("Cost of a against b: 100 % slower")
    assert said("b", step_ms=20.0).startswith("Cost of b against a: 50 % faster")


def test_parameters_and_work_are_told_where_they_are_known() -> None:
    assert "the same parameters" in said()
    assert "2 times the work" in said(flops=4000)
    assert "1,001 against 1,000 parameters" in said(parameters=1001)
    assert "parameters" not in said(parameters=None)


def test_large_numbers_that_hardly_differ_are_told_by_how_much() -> None:
    arms = [arm("a", flops=5_806_962_400, parameters=8_000_400), arm("b", flops=5_830_639_200, parameters=8_000_000)]
    found = cost_sentence([comparison("a")], arms)
    assert "0.005 % more parameters and 0.41 % less work for an example" in found


def test_nothing_is_said_where_no_two_arms_are_compared_or_nothing_is_known() -> None:
    both = [arm("a"), arm("b")]
    assert cost_sentence([comparison(kind="agreement")], both) == ""
    unknown = {"parameters": None, "flops": None, "step_ms": None}
    assert cost_sentence([comparison()], [arm("a", **unknown), arm("b", **unknown)]) == ""


def timed(verdict: str, ratio: tuple[float, float, float], **changes: Any) -> str:
    item = comparison(
        verdict, difference=-0.019, low=-0.026, high=-0.012, time_ratio=ratio[0], time_low=ratio[1], time_high=ratio[2]
    )
    return cost_sentence([item], [arm("a", step_ms=10.0 * ratio[0], **changes), arm("b", memory_bytes=1000)])


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        ((1.14, 1.12, 1.16), "14 % slower (timed in turns, 12 to 16 %;"),
        ((0.8, 0.7, 0.9), "20 % faster (timed in turns, 10 to 30 %;"),
        ((3.5, 3.2, 3.8), "3.5 times slower (timed in turns, 3.2 to 3.8 times;"),
        ((2.1, 1.9, 2.3), "2.1 times slower (timed in turns, 90 % to 2.3 times;"),
        ((1.01, 0.98, 1.04), "as fast as can be told (timed in turns, 2 % faster to 4 % slower;"),
    ],
)
def test_gain_and_time_stand_in_one_sentence_where_steps_were_timed_in_turns(
    ratio: tuple[float, float, float], words: str
) -> None:
    assert timed("a", ratio).startswith(f"a is better than b by 0.0190 (0.0120 to 0.0260) and {words}")
    assert timed("undecided", ratio).startswith(f"Cost of a against b: {words}")


def test_no_two_times_disagree_with_the_ratio() -> None:
    """The median of the ratios by round is not the ratio of the two medians: 23 % beside 3.3 and 2.8 ms (18 %)."""
    item = comparison("undecided", time_ratio=1.23, time_low=1.12, time_high=1.27)
    text = cost_sentence([item], [arm("a", step_ms=3.3), arm("b", step_ms=2.8)])
    assert "23 % slower (timed in turns, 12 to 27 %; a training step of b alone takes 2.8 ms)" in text
    assert "3.3" not in text


def test_the_ratio_turns_with_the_better_arm() -> None:
    assert timed("b", (2.0, 1.6, 2.5)).startswith("b is better than a by 0.0190")
    here = comparison("a", difference=0.02, low=0.01, high=0.03, time_ratio=1.2, time_low=1.1, time_high=1.3)
    here = here.model_copy(update={"crossed_low": -0.01, "crossed_high": 0.05})
    assert cost_sentence([here], [arm("a"), arm("b")]).startswith("a is better than b on this test set by 0.0200")
    assert "50 % faster (timed in turns, 38 % to 2.5 times;" in timed("b", (2.0, 1.6, 2.5))


def test_memory_is_told_where_it_was_measured() -> None:
    assert "1.2 times the memory" in timed("a", (1.14, 1.12, 1.16), memory_bytes=1200)
    assert "about the same memory" in timed("a", (1.14, 1.12, 1.16), memory_bytes=1017)
    assert "the same memory" in timed("a", (1.14, 1.12, 1.16), memory_bytes=1001)
    assert "memory" not in timed("a", (1.14, 1.12, 1.16))


def test_the_whole_training_is_told_where_the_arms_take_different_numbers_of_steps() -> None:
    item = comparison("undecided", time_ratio=2.0, time_low=1.9, time_high=2.1)
    text = cost_sentence([item], [arm("a", solo_seconds=20.0), arm("b", solo_seconds=10.0)])
    assert "a run of b alone trains 10 s" in text


def test_arms_that_are_trained_alike_take_the_same_time() -> None:
    assert "the same training time" in cost_sentence([comparison()], [arm("a"), arm("b")])


def test_arms_of_the_same_steps_and_different_epochs_take_different_times() -> None:
    longer = arm("a", differences=({"kind": "budget", "name": "epochs", "first": 15, "own": 60},))
    assert "4 times slower (60 against 15 epochs" in cost_sentence([comparison("undecided")], [longer, arm("b")])
    assert "4 times faster (15 against 60 epochs" in cost_sentence([comparison("b")], [longer, arm("b")])

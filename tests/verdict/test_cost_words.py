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


def comparison(verdict: str = "a", kind: str = "pair") -> ComparisonResult:
    absent = dict.fromkeys(
        ("difference", "low", "high", "p", "p_adjusted", "p_sign_flip", "p_a_better", "seeds_needed", "examples_low",
         "examples_high")
    )  # fmt: skip
    return ComparisonResult.model_validate(
        {"name": "x", "kind": kind, "primary": True, "a": "a", "b": "b", "sides": [], "metric": "accuracy",
         "margin": 0.1, "verdict": verdict, "seeds": 5, "sentence": "", **absent}
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


def test_nothing_is_said_where_no_two_arms_are_compared_or_nothing_is_known() -> None:
    both = [arm("a"), arm("b")]
    assert cost_sentence([comparison(kind="agreement")], both) == ""
    unknown = {"parameters": None, "flops": None, "step_ms": None}
    assert cost_sentence([comparison()], [arm("a", **unknown), arm("b", **unknown)]) == ""

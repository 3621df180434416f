from __future__ import annotations

import dataclasses
from typing import Literal

import pytest

from tiebreak.study.schema import Interaction, Pair
from tiebreak.verdict.sentences import sentence
from tiebreak.verdict.statistics import Compared

PAIR = Pair(a="pool", b="strided")
CROSS = Interaction(kind="interaction", a="cnn", b="mlp", c="cnn-shuffled", d="mlp-shuffled")


def result(verdict: Literal["a", "b", "same", "undecided"]) -> Compared:
    return Compared(difference=0.02, low=0.01, high=0.03, p_a_better=0.9, verdict=verdict, seeds=8)


@pytest.mark.parametrize(
    ("verdict", "start"),
    [
        ("a", "pool is better than strided ("),
        ("b", "strided is better than pool ("),
        ("same", "pool and strided are the same within ±0.005 ("),
        ("undecided", "Undecided between pool and strided ("),
    ],
)
def test_a_pair_in_words(verdict: Literal["a", "b", "same", "undecided"], start: str) -> None:
    said = sentence(PAIR, "pool", "strided", "accuracy", result(verdict), 0.005)
    assert said == f"{start}accuracy +0.0200, 95 % interval +0.0100 to +0.0300 over 8 paired seeds)."


@pytest.mark.parametrize(
    ("verdict", "start"),
    [
        ("a", "The advantage of cnn over mlp is larger than that of cnn-shuffled over mlp-shuffled ("),
        ("b", "The advantage of cnn over mlp is smaller than that of cnn-shuffled over mlp-shuffled ("),
        (
            "same",
            "The advantage of cnn over mlp and that of cnn-shuffled over mlp-shuffled are the same within ±0.005 (",
        ),
        (
            "undecided",
            "Undecided whether the advantage of cnn over mlp is larger than that of cnn-shuffled over mlp-sh",
        ),
    ],
)
def test_an_interaction_in_words(verdict: Literal["a", "b", "same", "undecided"], start: str) -> None:
    assert sentence(CROSS, "cnn - mlp", "cnn-shuffled - mlp-shuffled", "accuracy", result(verdict), 0.005).startswith(
        start
    )


def test_nothing_to_compare_yet() -> None:
    empty = Compared(difference=None, p_a_better=None, seeds=0)
    assert sentence(PAIR, "pool", "strided", "accuracy", empty, 0.005) == "pool and strided share no finished seed yet."


def test_a_single_seed_has_no_interval() -> None:
    one = Compared(difference=0.5, p_a_better=1.0, seeds=1)
    assert sentence(PAIR, "a", "b", "loss", one, 0.1) == "Undecided between a and b (loss +0.5000, 1 paired seed)."


def test_an_interval_that_was_cut_at_zero_is_open_there() -> None:
    cut = Compared(difference=0.02, low=0.0, high=0.03, p_a_better=0.9, verdict="a", seeds=8)
    assert "95 % interval above 0 to +0.0300 over" in sentence(PAIR, "a", "b", "accuracy", cut, 0.005)
    other = Compared(difference=-0.02, low=-0.03, high=0.0, p_a_better=0.1, verdict="b", seeds=8)
    assert "95 % interval -0.0300 to below 0 over" in sentence(PAIR, "a", "b", "accuracy", other, 0.005)
    none = Compared(difference=0.0, low=0.0, high=0.0, p_a_better=0.5, verdict="same", seeds=8)
    assert "95 % interval +0.0000 to +0.0000 over" in sentence(PAIR, "a", "b", "accuracy", none, 0.005)


def test_a_clear_difference_of_too_few_seeds_says_why_it_is_undecided() -> None:
    clear, open_ = result("undecided"), dataclasses.replace(result("undecided"), low=-0.01)
    few = "over 8 paired seeds, at least 9 could decide)."
    assert sentence(PAIR, "a", "b", "accuracy", clear, 0.005, least=9).endswith(few)
    for item, least in ((clear, 8), (open_, 9), (result("a"), 9)):
        assert sentence(PAIR, "a", "b", "accuracy", item, 0.005, least=least).endswith("over 8 paired seeds).")

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from support import hand_made
from support.hand_made import Book
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.verdict import ranges
from tiebreak.verdict.model import Side
from tiebreak.verdict.sides import arm_scores, paired_ranges, paired_scores, side_scores, usable_scores
from tiebreak.verdict.statistics import LARGEST

LR = {"lr": 0.1}


def side(arm: str, metric: str = "accuracy", metrics: tuple[str, ...] = ()) -> Side:
    return Side(arm=arm, setting=LR, metric=metric, metrics=metrics)


def tally(scores: dict[str, list[float]], epochs: int = 2) -> Tally:
    """Runs of both arms that end with these test scores, by seed."""
    study = hand_made.study(budget={"epochs": epochs, "batch": 8})
    book = Book(hand_made.plan(study))
    for arm, values in scores.items():
        for seed, value in enumerate(values):
            book.done(arm, LR, seed, val=0.5, test=value, losses=[1.0] * epochs)
    return Tally(study, book.plan, Records(epochs=book.epochs, runs=book.runs, finals=book.finals))


@given(st.dictionaries(st.integers(0, 9), st.floats()))
def test_a_score_is_usable_when_its_size_is_at_most_the_largest(scores: dict[int, float]) -> None:
    expected = {seed: score for seed, score in scores.items() if math.isfinite(score) and abs(score) <= LARGEST}
    assert usable_scores(scores) == expected


def test_scores_that_cannot_be_compared_are_left_out() -> None:
    found = tally({"pool": [0.5, math.nan, math.inf], "strided": [0.25, 0.5, 0.75]})
    assert arm_scores(found, "pool", LR, "accuracy") == {0: 0.5}
    assert side_scores(found, side("strided")) == {0: 0.25, 1: 0.5, 2: 0.75}


def test_a_pair_has_the_scores_of_both_and_an_interaction_their_differences() -> None:
    found = tally({"pool": [0.5, 0.75], "strided": [0.25, 0.5, 0.75]})
    pair = (side("pool"), side("strided"))
    assert paired_scores(found, pair) == ({0: 0.5, 1: 0.75}, {0: 0.25, 1: 0.5, 2: 0.75})
    assert paired_scores(found, (*pair, side("strided"), side("strided"))) == (
        {0: 0.25, 1: 0.25},
        {0: 0.0, 1: 0.0, 2: 0.0},
    )


def test_an_agreement_is_compared_with_zero() -> None:
    found = tally({"pool": [0.5, 0.75]}, epochs=3)
    agreement = side("pool", metrics=("accuracy", "loss"))
    assert paired_scores(found, (agreement,)) == ({0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0}), "validation never changes"
    assert paired_ranges((agreement,)) == (ranges.CORRELATION, (0.0, 0.0))


def test_ranges_of_both_sides() -> None:
    pair = (side("pool"), side("pool", "perplexity"))
    assert paired_ranges(pair) == (ranges.SHARE, (1.0, math.inf))
    four = tuple(side(arm) for arm in ("pool", "strided", "pool", "strided"))
    assert paired_ranges(four) == ((-1.0, 1.0), (-1.0, 1.0))

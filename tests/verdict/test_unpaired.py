from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.verdict import unpaired
from tiebreak.verdict.statistics import Sample, compare

scores = st.lists(st.floats(-5, 5).map(lambda value: round(value, 3)), min_size=3, max_size=8)


@given(scores, scores)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_welch_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    a, b = np.array(first), np.array(second)
    found = unpaired.welch(a, b)
    if min(a.std(), b.std()) < 1e-6:
        return
    expected = scipy.stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(float(expected.pvalue), abs=1e-9)
    ends = expected.confidence_interval(0.9)
    assert found.interval(0.1) == pytest.approx((float(ends.low), float(ends.high)))


def test_the_permutation_test_tries_every_split() -> None:
    stream = np.random.default_rng(3)
    a, b = stream.normal(0.4, 1, 4), stream.normal(0, 2, 5)

    def t(chosen: tuple[int, ...]) -> float:
        every = np.concatenate((a, b))
        inside = np.isin(np.arange(9), chosen)
        return abs(float(scipy.stats.ttest_ind(every[inside], every[~inside], equal_var=False).statistic))

    own = t((0, 1, 2, 3))
    hits = [t(chosen) >= own - 1e-9 for chosen in itertools.combinations(range(9), 4)]
    assert unpaired.permutation_p(a, b) == pytest.approx(np.mean(hits))


def test_many_runs_are_drawn_and_very_many_are_left_out() -> None:
    stream = np.random.default_rng(1)
    a, b = stream.normal(1, 1, 30), stream.normal(0, 1, 30)
    p = unpaired.permutation_p(a, b)
    assert p is not None
    assert p == pytest.approx(unpaired.welch(a, b).p, abs=0.003)
    assert unpaired.permutation_p(np.zeros(15_000), np.zeros(6_000)) is None


def test_the_fewest_runs_follow_from_the_permutation_test() -> None:
    assert [unpaired.least_runs(many) for many in (1, 2, 7, 28)] == [4, 5, 6, 7]
    assert not unpaired.enough(3, 3, 1)
    assert unpaired.enough(3, 6, 1)
    assert not unpaired.enough(1, 100, 1)


def test_verdicts_of_unpaired_runs() -> None:
    stream = np.random.default_rng(5)
    high, low = stream.normal(0.92, 0.004, 10), stream.normal(0.9, 0.004, 7)
    better, same, few = compare(
        [
            Sample(a=high, b=low, paired=False),
            Sample(a=high, b=high[::-1][:9], paired=False, margin=0.02),
            Sample(a=high[:2], b=low[:2], paired=False),
        ],
        margin=0.005,
    )
    assert (better.verdict, better.runs, better.seeds) == ("a", (10, 7), 7)
    assert same.verdict == "same"
    assert (few.verdict, few.seeds_needed is not None) == ("undecided", True)
    assert "fewer than the" in few.flags[0]
    (lower,) = compare([Sample(a=high, b=low, paired=False, goal="min")], margin=0.005)
    assert lower.verdict == "b"


def test_runs_without_spread_and_single_runs() -> None:
    flat, one, none = compare(
        [
            Sample(a=[1.0] * 6, b=[0.0] * 6, paired=False),
            Sample(a=[1.0], b=[0.0, 0.5], paired=False),
            Sample(a=[], b=[0.5], paired=False),
        ],
        margin=0.1,
    )
    assert flat.p == 0
    assert any("no spread" in flag for flag in flat.flags)
    assert (one.difference, one.p, one.verdict) == (0.75, None, "undecided")
    assert none.difference is None


def test_equal_arms_are_told_apart_in_about_5_per_cent() -> None:
    stream = np.random.default_rng(11)
    wrong = 0
    for _ in range(400):
        a, b = stream.normal(0, 1, 12), stream.normal(0, 3, 6)
        wrong += unpaired.welch(a, b).p <= 0.05
    assert 5 <= wrong <= 36  # 20 expected, sd 4.4

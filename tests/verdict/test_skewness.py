"""Hall's correction of lopsided differences: interval and p agree, and it errs less often than the t-test."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.verdict.skewness import LOPSIDED, hall_interval, hall_p, is_lopsided, skewness
from tiebreak.verdict.statistics import Sample, compare, t_test_p


def test_skewness_is_that_of_scipy_and_normal_samples_are_rarely_lopsided() -> None:
    rows = np.random.default_rng(1).standard_normal((4_000, 10))
    assert skewness(rows[0]) == pytest.approx(float(scipy.stats.skew(rows[0])))
    assert np.mean([is_lopsided(row) for row in rows]) == pytest.approx(0.05, abs=0.015)
    assert skewness(np.ones(5)) == 0.0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(5, 30), st.sampled_from([0.001, 0.045, 0.3]), st.floats(-2, 3))
def test_halls_interval_excludes_zero_exactly_when_its_p_rejects(seed: int, n: int, level: float, shift: float) -> None:
    values = np.random.default_rng(seed).exponential(size=n) - shift
    low, high = hall_interval(values, level)
    assert low < high
    if (low + high) / 2 * values.mean() > 0:  # the correction did not turn the sign
        assert (low > 0 or high < 0) == (hall_p(values) <= level) or hall_p(values) == 1.0


@pytest.mark.parametrize("draw", ["exponential", "lognormal", "normal", "t3"])
@pytest.mark.parametrize("n", [6, 20])
def test_the_wider_of_both_errs_less_often_than_t(draw: str, n: int) -> None:
    """What `benchmarks/lopsided.py` measures, short: no more errors anywhere, clearly fewer for skewed differences."""
    stream, studies = np.random.default_rng([n, 3]), 4_000
    rows = {
        "exponential": stream.exponential(size=(studies, n)) - 1,
        "lognormal": stream.lognormal(size=(studies, n)) - math.exp(0.5),
        "normal": stream.standard_normal((studies, n)),
        "t3": stream.standard_t(3, (studies, n)),
    }[draw]
    t = np.array([t_test_p(row) <= 0.05 for row in rows])
    wider = np.array([p and (not is_lopsided(row) or hall_p(row) <= 0.05) for row, p in zip(rows, t, strict=True)])
    assert wider.mean() <= t.mean()
    if draw == "lognormal":
        assert wider.mean() < t.mean() - 0.015
    if draw == "normal":
        assert wider.mean() > t.mean() - 0.01  # t is right here, and stays


def test_lopsided_differences_are_flagged_with_their_skewness() -> None:
    values = np.array([0.1, 0.1, 0.1, 0.2, 0.1, 0.2, 0.1, 3.0])
    (found,) = compare([Sample(a=values, b=np.zeros(8))], margin=0.01)
    assert LOPSIDED in found.flags
    assert found.skewness is not None
    assert 2 < found.skewness < 3
    assert any("its long end is Hall's" in flag for flag in found.flags)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= hall_interval(values, 0.05)[0] < hall_interval(values, 0.05)[1] <= found.high
    assert found.high == pytest.approx(hall_interval(values, 0.05)[1])

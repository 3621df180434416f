from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tiebreak.errors import TiebreakError
from tiebreak.theory.fit import crossings, crossover, fit_exponent


@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=12), st.floats(-2, 3))
def test_it_is_the_regression_of_scipy(noise: list[float], slope: float) -> None:
    xs = [2.0**n for n in range(len(noise))]
    ys = [x**slope * factor for x, factor in zip(xs, noise, strict=True)]
    found = stats.linregress(np.log(xs), np.log(ys))
    half = stats.t.ppf(0.975, len(xs) - 2) * np.nan_to_num(found.stderr)  # NaN where all values are equal
    expected = (found.slope, found.slope - half, found.slope + half)
    assert fit_exponent(xs, ys) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_two_points_have_no_interval() -> None:
    slope, low, high = fit_exponent([1, 2], [1, 8])
    assert slope == 3
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize(("xs", "ys"), [([1], [1]), ([1, 1], [1, 2]), ([1, 2], [0, 1]), ([1, 2], [1, 2, 3])])
def test_what_has_no_exponent(xs: list[float], ys: list[float]) -> None:
    with pytest.raises(TiebreakError, match="two or more different sizes"):
        fit_exponent(xs, ys)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator, xs = np.random.default_rng(0), np.array([256.0, 512, 1024, 2048, 4096])
    hits = 0
    for _ in range(400):
        _, low, high = fit_exponent(list(xs), list(xs**2 * np.exp(generator.normal(0, 0.2, len(xs)))))
        hits += low <= 2 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_crossover() -> None:
    xs = [1.0, 2.0, 4.0, 8.0]
    squares, lines = [x**2 for x in xs], [3 * x for x in xs]
    for first, second, second_wins in ((squares, lines, True), (lines, squares, False)):
        found = crossover(xs, first, second)
        assert found is not None
        assert found[0] == pytest.approx(3.0)
        assert found[1] is second_wins
    assert crossover(xs, lines, [10 * y for y in lines]) is None
    last = crossover(xs, [1, 3, 1, 3], [2, 2, 2, 2])
    assert last is not None
    assert last[0] == pytest.approx(4 * 2 ** (math.log(2) / math.log(3)))


def test_crossings_count_every_change_of_sides() -> None:
    assert crossings([1, 2, 3], [2, 3, 4]) == 0
    assert crossings([1, 3], [2, 2]) == 1
    assert crossings([1, 3, 1, 3], [2, 2, 2, 2]) == 3

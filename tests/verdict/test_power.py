"""The power of both tests against tables and integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import settings
from numpy.typing import NDArray

from tiebreak.verdict.compared import MOST_SEEDS
from tiebreak.verdict.power import equivalence_power, power, seeds_needed
from tiebreak.verdict.sequential import Looks

Array = NDArray[np.float64]
few = settings(max_examples=60, deadline=None, derandomize=True)


def by_integration(t: float, n: int, shift: float) -> float:
    """P(T' < t) as the mean of the normal chance over the spread that a sample may show."""
    middle = (np.arange(20_000) + 0.5) / 20_000
    spread = np.sqrt(scipy.stats.chi2.ppf(middle, n - 1) / (n - 1))
    return float(scipy.stats.norm.cdf(t * spread - shift).mean())


@pytest.mark.parametrize(("difference", "n", "expected"), [(1.0, 10, 0.803), (0.5, 34, 0.808), (0.8, 15, 0.821)])
def test_power_is_that_of_the_tables(difference: float, n: int, expected: float) -> None:
    assert power(difference, 1.0, n) == pytest.approx(expected, abs=5e-4)
    assert power(-difference * 7, 7.0, n) == pytest.approx(power(difference, 1.0, n))


def test_80_percent_power_needs_10_seeds_for_1_sd_and_34_for_half() -> None:
    for difference, n in ((1.0, 10), (0.5, 34)):
        assert power(difference, 1.0, n - 1) < 0.8 <= power(difference, 1.0, n)


@pytest.mark.parametrize("n", [3, 8, 40, 5000])
@pytest.mark.parametrize("effect", [0.0, 0.3, 1.0, 4.0])
def test_powers_agree_with_integration(effect: float, n: int) -> None:
    shift, critical = effect * math.sqrt(n), float(scipy.stats.t.isf(0.025, n - 1))
    expected = by_integration(-critical, n, shift) + 1 - by_integration(critical, n, shift)
    assert power(effect, 1.0, n) == pytest.approx(expected, abs=1e-5)
    critical = float(scipy.stats.t.isf(0.05, n - 1))
    under, over = (by_integration(sign * critical, n, shift + sign * math.sqrt(n)) for sign in (-1, 1))
    assert equivalence_power(effect, 1.0, n, margin=1.0) == pytest.approx(max(0.0, under - over), abs=1e-5)


def test_power_grows_with_seeds_and_never_is_nan() -> None:
    totals = np.unique(np.geomspace(2, MOST_SEEDS, 200).astype(int))
    for effect in (0.01, 0.1, 0.46, 3.0, 1e3, 1e300):
        for level in (0.05, 0.05 / 3, 1e-5):
            assert np.all(np.diff([power(effect, 1.0, int(n), level) for n in totals]) > -1e-9)
            assert np.all(np.diff([equivalence_power(effect / 4, 1.0, int(n), effect / 2) for n in totals]) > -1e-6)


@pytest.mark.parametrize("n", [2, 5, 40, 5000])
def test_beyond_the_margin_the_chance_of_same_is_at_most_its_level(n: int) -> None:
    for effect in (1.0, -1.0, 1.5, -3.0):
        for margin in (1.0, 1e-3):
            assert equivalence_power(effect, 1.0, n, margin, 0.05) <= 0.05 + 1e-9


def test_power_at_the_edges() -> None:
    assert power(1.0, 1.0, 1) == 0.0
    assert (power(1.0, 0.0, 5), power(0.0, 0.0, 5)) == (1.0, 0.0)
    assert (equivalence_power(0.1, 0.0, 5, 0.2), equivalence_power(0.3, 0.0, 5, 0.2)) == (1.0, 0.0)
    assert power(0.0, 1.0, 9) == pytest.approx(0.05)


def test_a_further_look_takes_more_seeds_than_a_first_one() -> None:
    """(10, 34) is what the advice after ten seeds at half an sd used to say; as a second look it takes more."""
    first = seeds_needed(0.5, 1.0, 10, 0.01, level=0.05, alpha=0.05, least=6)
    second = seeds_needed(0.5, 1.0, 10, 0.01, level=0.05, alpha=0.05, least=6, looks=Looks((10,), 10))
    assert first == 24
    assert second is not None
    total = 10 + second
    level = Looks((10, total), 10).level(0.05)
    assert power(0.5, 1.0, total, level) >= 0.8 > power(0.5, 1.0, total - 1, Looks((10, total - 1), 10).level(0.05))
    assert total > 34

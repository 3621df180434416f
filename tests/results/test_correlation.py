from __future__ import annotations

import doctest
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tiebreak.results import correlation
from tiebreak.results.correlation import least_spearman, spearman

Values = npt.NDArray[np.float64]
# few different values, so that there are ties and constant columns
TABLES = arrays.arrays(
    np.float64, st.tuples(st.integers(3, 12), st.integers(2, 5)), elements=st.integers(-3, 3).map(float)
)


def naive_ranks(values: Values) -> list[float]:
    """1 plus how many values are smaller, plus half of how many others are equal."""
    return [1 + sum(other < own for other in values) + (sum(other == own for other in values) - 1) / 2
            for own in values]  # fmt: skip


def naive_spearman(first: Values, second: Values) -> float:
    """Pearson's formula on the ranks; 0 where a column is constant."""
    a, b = naive_ranks(first), naive_ranks(second)
    mean = (len(a) + 1) / 2
    product = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    sizes = math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    return round(product / sizes, 12) if sizes else 0.0


def former_least_correlation(values: Values) -> float:
    """What verdicts were made with before scipy's function replaced it."""
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=0)
    ranks = ranks - ranks.mean(axis=0)
    sizes = np.sqrt((ranks**2).sum(axis=0))
    table = (ranks.T @ ranks) / np.where(sizes > 0, sizes, 1.0) / np.where(sizes > 0, sizes, 1.0)[:, None]
    return float(np.round(table[np.triu_indices(len(table), 1)].min(), 12))


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(correlation).failed == 0


@given(TABLES)
def test_it_is_the_plain_formula_with_ties_and_constants(values: Values) -> None:
    first, second = values[:, 0], values[:, 1]
    found = spearman(first, second)
    assert (found is None) == (len(set(first)) == 1 or len(set(second)) == 1)
    assert (found or 0.0) == pytest.approx(naive_spearman(first, second), abs=2e-12)


@given(TABLES)
def test_verdicts_keep_their_digits(values: Values) -> None:
    assert least_spearman(values) == pytest.approx(former_least_correlation(values), abs=2e-12)


def test_verdicts_keep_their_digits_on_continuous_values() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        values = random.normal(size=(random.integers(3, 40), 4))
        assert least_spearman(values) == former_least_correlation(values)


@given(TABLES)
def test_it_depends_on_the_order_alone_and_changes_its_sign_with_it(values: Values) -> None:
    first, second = values[:, 0], values[:, 1]
    found = spearman(first, second)
    assert spearman(np.exp(first), second) == found == spearman(second, first)
    assert spearman(-first, second) == (None if found is None else -found)


def test_too_few_values_and_constants_have_none_and_nan_stays_nan() -> None:
    rising = np.arange(5.0)
    assert spearman(rising[:2], rising[:2]) is None
    assert spearman(rising, np.ones(5)) is None
    assert least_spearman(np.stack([rising, np.ones(5)], axis=1)) == 0
    lost = np.stack([rising, np.where(rising == 2, np.nan, rising), rising], axis=1)
    assert math.isnan(least_spearman(lost))

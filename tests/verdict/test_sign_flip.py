"""The sign-flip test against counting and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tiebreak.verdict.sign_flip import DRAWS, sign_flip_p
from tiebreak.verdict.statistics import Sample, compare

Array = NDArray[np.float64]
few = settings(max_examples=60, deadline=None, derandomize=True)


def normal(seed: int, n: int, mean: float = 0.0, sd: float = 1.0) -> Array:
    return np.random.default_rng(seed).normal(mean, sd, n)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=9))
@few
def test_sign_flip_counts_every_pattern(differences: list[int]) -> None:
    observed = abs(sum(differences))
    patterns = list(itertools.product([-1, 1], repeat=len(differences)))
    hits = sum(abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed for signs in patterns)
    assert sign_flip_p(differences) == hits / len(patterns)
    assert sign_flip_p(np.array(differences) / 10) == hits / len(patterns)  # tenths are not exact: ties must survive


def test_sign_flip_is_the_permutation_test_of_scipy() -> None:
    a, b = normal(1, 10, 0.5), normal(2, 10)
    found = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**10,
    )
    assert sign_flip_p(a - b) == pytest.approx(float(found.pvalue))


def test_sign_flip_cannot_go_below_its_least() -> None:
    for n in (5, 6, 16):
        assert sign_flip_p([1.0] * n) == 2.0 ** (1 - n)
    assert sign_flip_p([1.0] * 40) == 1 / (DRAWS + 1)
    assert sign_flip_p([0.0] * 40) == 1.0


def test_random_sign_patterns_agree_with_all_of_them() -> None:
    differences = normal(5, 17, 0.4)
    sums = np.zeros(1)
    for value in differences:
        sums = np.concatenate([sums + value, sums - value])
    exact = float(np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9))
    assert abs(sign_flip_p(differences) - exact) < 4 * math.sqrt(exact * (1 - exact) / DRAWS)
    assert sign_flip_p(differences) == sign_flip_p(differences)


@few
@given(st.lists(st.lists(st.integers(-30, 30), min_size=1, max_size=18), min_size=1, max_size=6))
def test_sign_flips_of_many_samples_are_those_of_each(rows: list[list[int]]) -> None:
    samples = [Sample(a=np.array(row) / 8, b=np.zeros(len(row))) for row in rows]
    together = compare(samples, margin=1.0)
    expected = [sign_flip_p(np.array(row) / 8) if len(row) > 1 else None for row in rows]
    assert [result.p_sign_flip for result in together] == expected


def test_with_very_many_seeds_neighbours_flip_together() -> None:
    """The test stays valid: under the hypothesis, flipping seeds in groups changes nothing either."""
    source = np.random.default_rng(11)
    assert sign_flip_p(source.standard_normal(5_000) + 0.1) < 0.001
    normal = 2 * scipy.stats.norm.cdf(-2.0)
    two_sigma = source.standard_normal(5_000)
    two_sigma += 2 / math.sqrt(5_000) * two_sigma.std() - two_sigma.mean()
    assert sign_flip_p(two_sigma) == pytest.approx(normal, abs=0.01)

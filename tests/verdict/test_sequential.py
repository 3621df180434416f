"""Alpha spending: the boundaries against integration, what is spent, and the p-value as the inverse of the level."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from tiebreak.verdict.sequential import Looks, _crossing, _undecided, boundaries, look_sizes, spent

few = settings(max_examples=40, deadline=None, derandomize=True)
growing = st.lists(st.integers(2, 200), min_size=1, max_size=6, unique=True).map(lambda some: tuple(sorted(some)))


def test_looks_come_after_half_as_many_seeds_again() -> None:
    assert look_sizes(6, 60) == (6, 9, 14, 21, 32, 48, 60)
    assert look_sizes(6, 12) == (6, 9, 12)
    assert look_sizes(6, 20) == (6, 8, 11, 15, 20)  # a third where the end is near
    assert look_sizes(7, 7) == (7,)
    for last in range(6, 120):  # what is left after a kill is what was planned
        sizes = look_sizes(6, last)
        assert all(look_sizes(6, last, each) == sizes[k:] for k, each in enumerate(sizes))
    for first, end in ((7, 6), (1, 6)):
        with pytest.raises(ValueError, match="first look"):
            look_sizes(first, end)


@few
@given(growing.flatmap(st.permutations).map(tuple), st.integers(2, 100))
def test_no_sequence_of_looks_spends_all(seeds: tuple[int, ...], end: int) -> None:
    shares = spent(seeds, end)
    assert all(share > 0 for share in shares)
    assert sum(shares) < 1
    assert sum(spent((*seeds, *seeds), end)) < 1  # each once more, after failed runs


def test_a_study_that_is_looked_at_as_planned_keeps_a_tenth_for_later() -> None:
    assert Looks((10,), 10).level(0.05) == pytest.approx(0.045)
    assert Looks((10,), 10).adjusted(0.045) == pytest.approx(0.05)
    assert Looks((10, 34), 10).level(0.05) < 0.01


@pytest.mark.parametrize(("seeds", "end"), [((6, 9), 20), ((10, 34), 10), ((30, 31), 60)])
def test_boundaries_are_those_of_the_normal_distribution(seeds: tuple[int, int], end: int) -> None:
    errors = tuple(0.05 * share for share in spent(seeds, end))
    first, second = boundaries(seeds, errors)
    assert 2 * scipy.stats.norm.sf(first) == pytest.approx(errors[0])
    joint = scipy.stats.multivariate_normal(cov=[[1, r := math.sqrt(seeds[0] / seeds[1])], [r, 1]])
    inside = joint.cdf([first, second], lower_limit=[-first, -second])
    assert 1 - inside == pytest.approx(sum(errors), abs=1e-5)


@few
@given(growing, st.integers(2, 100), st.floats(1e-6, 0.5))
def test_adjusted_p_is_the_inverse_of_the_level(seeds: tuple[int, ...], end: int, alpha: float) -> None:
    looks = Looks(seeds[-3:], end)
    level = looks.level(alpha)
    assert 0 < level <= alpha
    assert looks.adjusted(level) == pytest.approx(alpha, rel=5e-3)
    assert looks.adjusted(level * 1.1) > looks.adjusted(level)
    assert (looks.adjusted(0.0), looks.adjusted(1.0)) == (0.0, 1.0)


def test_all_looks_together_err_in_at_most_5_percent() -> None:
    """A short simulation of `benchmarks/truth.py`: no difference, normal and heavy-tailed, and after an extension."""
    studies, stream = 20_000, np.random.default_rng(19)
    cases = (
        ((6, 9, 14, 20), 20),
        ((10, 34), 10),
        ((10, 20, 30, 40), 10),
        ((14, 8, 9, 10, 11, 12, 13), 14),
        ((9, 6, 14), 14),
    )
    for seeds, end in cases:
        for rows in (stream.standard_normal((studies, max(seeds))), stream.standard_t(3, (studies, max(seeds)))):
            wrong = np.zeros(studies, dtype=bool)
            for k, n in enumerate(seeds):
                level = Looks(seeds[: k + 1], end).level(0.05)
                t = rows[:, :n].mean(1) / (rows[:, :n].std(1, ddof=1) / math.sqrt(n))
                wrong |= 2 * scipy.stats.t.sf(np.abs(t), n - 1) <= level
            assert wrong.mean() < 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


def test_a_look_at_fewer_seeds_than_before_is_a_further_one() -> None:
    """The scores of the larger look were seen: a test of the smaller one at its own level would err more than 5 %."""
    first, again = Looks((14,), 14), Looks((14, 8), 14)
    assert again.level(0.05) == pytest.approx(0.05 * 0.05)
    assert again.adjusted(again.level(0.05)) == pytest.approx(0.05, rel=5e-3)
    assert Looks((14, 8, 20), 14).level(0.05) < Looks((14, 20), 14).level(0.05)
    assert (first.after(8), again.after(14)) == (again, first)
    assert Looks((9, 6, 14), 60).level(0.05) == Looks((9, 14), 60).level(0.05)  # what was planned stays


def test_a_look_at_as_many_seeds_after_failed_runs_were_tried_again_is_a_further_one() -> None:
    """Tested at .045 both times, 20 pairs and then all 40 would err in 7.6 % of equal designs."""
    looks = [Looks((40,), 40), Looks((40, 40), 40, (20, 40))]
    levels = [each.level(0.05) for each in looks]
    assert levels == pytest.approx([0.045, Looks((20, 40), 20).level(0.05)])
    joint = scipy.stats.multivariate_normal(cov=[[1, r := math.sqrt(1 / 2)], [r, 1]])
    bounds = scipy.stats.norm.isf(np.array(levels) / 2)
    assert 1 - joint.cdf(bounds, lower_limit=-bounds) < 0.05
    assert looks[1].adjusted(levels[1]) == pytest.approx(0.05, rel=5e-3)
    assert Looks((40, 40), 40).level(0.05) == pytest.approx(0.0025), "Bonferroni's, where nothing is known of the first"
    assert looks[1].after(60) == Looks((40, 40, 60), 40, (20, 40, 60))
    assert looks[1].after(60).level(0.05) < Looks((40, 60), 40).level(0.05)
    assert looks[1].until(0).level(0.05) == levels[0]


def test_bad_looks_are_refused() -> None:
    for seeds in ((), (1, 5)):
        with pytest.raises(ValueError, match="from 2"):
            Looks(seeds, 10)
    with pytest.raises(ValueError, match="2 looks"):
        Looks((5, 5), 5, (4,))
    with pytest.raises(ValueError, match="alpha"):
        Looks((5,), 5).level(0.0)


@pytest.mark.parametrize("seeds", [(), (5,), (6, 9, 14), (2, 300)])
def test_boundaries_are_those_of_plain_bisection_bit_for_bit(seeds: tuple[int, ...]) -> None:
    points, masses, _ = _undecided(seeds, tuple(0.01 for _ in seeds))
    for sd in (0.7, 3.0, 40.0):
        for error in (1e-9, 1e-4, 0.045, 0.5, 0.9 * float(masses.sum())):
            low, high = 0.0, float(np.abs(points).max()) + 40 * sd
            for _ in range(60):
                middle = (low + high) / 2
                outside = float(masses @ (ndtr((points - middle) / sd) + ndtr((-points - middle) / sd)))
                low, high = (middle, high) if outside > error else (low, middle)
            assert _crossing(points, masses, sd, error) == (low + high) / 2

"""What `stats` promises, checked on random scores whose truth is known. Fixed streams, binomial tolerances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tiebreak.verdict.power import equivalence_power, power
from tiebreak.verdict.statistics import (
    Compared,
    Sample,
    chance_a_better,
    compare,
    estimate,
    example_interval,
    holm,
    prediction_interval,
    t_test_p,
)

Array = NDArray[np.float64]
NO_MARGIN = 1e-9


def stream(seed: int) -> np.random.Generator:
    return np.random.default_rng([2024, seed])


def tolerance(rate: float, repeats: int) -> float:
    """Four standard errors of a share: a correct engine fails once in 16,000 choices of the stream."""
    return 4 * math.sqrt(rate * (1 - rate) / repeats)


def covers(low: float | None, high: float | None, truth: float) -> bool:
    assert low is not None
    assert high is not None
    return low <= truth <= high


def verdicts(differences: Array, margin: float) -> list[str]:
    """The verdict on each row of differences [repeats, n], each row a study with one comparison."""
    return [compare([Sample(a=row, b=np.zeros(len(row)))], margin=margin)[0].verdict for row in differences]


@pytest.mark.parametrize("n", [5, 10])
def test_t_intervals_cover_95_percent(n: int) -> None:
    repeats = 20_000
    found = [estimate(row) for row in stream(n).normal(0.9, 0.01, (repeats, n))]
    share = np.mean([covers(item.low, item.high, 0.9) for item in found])
    assert abs(share - 0.95) < tolerance(0.95, repeats) < 0.01


def test_prediction_intervals_hold_95_percent_of_fresh_runs() -> None:
    repeats = 10_000
    rows = stream(1).normal(size=(repeats, 6))  # five seeds and a fresh run
    inside = []
    for row in rows:
        low, high = prediction_interval(row[:5]) or (math.nan, math.nan)
        inside.append(low <= row[5] <= high)
    assert abs(np.mean(inside) - 0.95) < tolerance(0.95, repeats) < 0.01


@pytest.mark.parametrize("n", [6, 10])
def test_a_against_a_is_called_different_in_5_percent(n: int) -> None:
    repeats = 1_500
    found = verdicts(stream(n + 20).normal(size=(repeats, n)), NO_MARGIN)
    assert set(found) == {"a", "b", "undecided"}
    for side in ("a", "b"):
        assert abs(found.count(side) / repeats - 0.025) < tolerance(0.025, repeats)
    p_values = np.array([t_test_p(row) for row in stream(n + 40).normal(size=(20_000, n))])
    for level in (0.01, 0.05, 0.5):
        assert abs(np.mean(p_values <= level) - level) < tolerance(level, 20_000)


def family(scores: Array) -> list[Compared]:
    """All pairs of three arms, scores [arms, n]."""
    return compare([Sample(a=scores[i], b=scores[j]) for i, j in ((0, 1), (0, 2), (1, 2))], margin=NO_MARGIN)


def test_three_equal_arms_are_told_apart_in_at_most_5_percent_of_families() -> None:
    repeats, n = 600, 8
    wrong = [any(result.verdict != "undecided" for result in family(s)) for s in stream(2).normal(size=(repeats, 3, n))]
    assert np.mean(wrong) < 0.05 + tolerance(0.05, repeats)
    apart = stream(3).normal(size=(8_000, 3, n))  # three comparisons that share no arm: the most wrong ones Holm allows
    errors = [holm([t_test_p(row) for row in rows]).min() <= 0.05 for rows in apart]
    expected = 1 - (1 - 0.05 / 3) ** 3
    assert abs(np.mean(errors) - expected) < tolerance(expected, 8_000)


@pytest.mark.parametrize(
    ("effects", "missed"),
    [
        ((0.0, 0.0, 0.0), 0.05),  # all null
        ((3.0, 3.0, -3.0), 0.05),  # all clear
        ((1.0, 1.0, 1.0), 0.05),  # all real, often undecided
        ((4.0, 4.0, 0.01), 0.05 + 0.05 / 3),  # two clear ones raise the level at which the third gets a sign
        ((4.0, 4.0, 0.0), 0.05 + 2 * 0.05 / 3),  # the worst: the same with no sign that could be right
    ],
)
def test_simultaneous_intervals_cover_all_truths_together(effects: tuple[float, ...], missed: float) -> None:
    repeats, n, zeros = 500, 8, np.zeros(8)
    misses = 0
    for noise in stream(4).normal(size=(repeats, 3, n)):
        samples = [Sample(a=row + effect, b=zeros) for row, effect in zip(noise, effects, strict=True)]
        results = compare(samples, margin=NO_MARGIN)
        misses += not all(_open_covers(result, effect) for result, effect in zip(results, effects, strict=True))
    assert misses / repeats < missed + tolerance(missed, repeats)


def _open_covers(result: Compared, truth: float) -> bool:
    """An end of exactly 0 is open."""
    return covers(result.low, result.high, truth) and not (truth == 0 and 0 in (result.low, result.high))


@pytest.mark.parametrize(("effect", "n"), [(1.0, 10), (1.5, 6), (0.5, 12)])
def test_power_is_as_predicted(effect: float, n: int) -> None:
    repeats = 1_000
    found = verdicts(stream(n + 60).normal(effect, 1, (repeats, n)), NO_MARGIN)
    expected = power(effect, 1.0, n)
    assert abs(np.mean([verdict != "undecided" for verdict in found]) - expected) < tolerance(expected, repeats)


@pytest.mark.parametrize("n", [8, 12])
def test_a_difference_of_the_margin_is_called_same_in_at_most_5_percent(n: int) -> None:
    repeats = 1_500
    found = verdicts(stream(n + 80).normal(1.5, 1, (repeats, n)), 1.5)
    assert found.count("same") / repeats < 0.05 + tolerance(0.05, repeats)


@pytest.mark.parametrize(("effect", "n"), [(0.0, 12), (0.2, 14)])
def test_equal_arms_are_called_same_as_predicted(effect: float, n: int) -> None:
    repeats = 1_000
    found = verdicts(stream(n + 100).normal(effect, 1, (repeats, n)), 1.0)
    expected = equivalence_power(effect, 1.0, n, margin=1.0)
    assert 0.5 < expected < 0.99
    assert abs(found.count("same") / repeats - expected) < tolerance(expected, repeats)


def test_seeds_needed_gives_80_percent_power_at_the_truth() -> None:
    scores = stream(5).normal(size=20)
    scores = (scores - scores.mean()) / scores.std(ddof=1) + 0.4
    result = compare([Sample(a=scores, b=np.zeros(20))], margin=0.01)[0]
    assert result.seeds_needed is not None
    total, repeats = 20 + result.seeds_needed, 10_000
    rejects = np.mean([t_test_p(row) <= 0.05 for row in stream(6).normal(0.4, 1, (repeats, total))])
    assert 0.8 - tolerance(0.8, repeats) < rejects < 0.82 + tolerance(0.8, repeats)


def test_chance_a_better_is_right_on_average() -> None:
    repeats = 4_000
    rows = stream(7).normal(size=(repeats, 2, 8))
    mean = np.mean([chance_a_better(a + 1.0, b) or 0.0 for a, b in rows])
    expected = (1 + math.erf(0.5)) / 2  # P(N(1, 2) > 0)
    assert abs(mean - expected) < 4 * 0.15 / math.sqrt(repeats)


def test_example_intervals_cover_95_percent_of_test_sets() -> None:
    repeats, examples, runs = 2_000, 300, 3
    source = stream(8)
    covered = []
    for _ in range(repeats):
        hard = source.random(examples)  # how hard each example is, for both designs
        a, b = (source.random((runs, examples)) < rate - 0.3 * hard for rate in (0.95, 0.9))
        low, high = example_interval(a, b) or (math.nan, math.nan)
        covered.append(low <= 0.05 <= high)
    assert abs(np.mean(covered) - 0.95) < tolerance(0.95, repeats)

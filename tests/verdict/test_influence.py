from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tiebreak.study.registry import TASKS, MetricEntry
from tiebreak.verdict.influence import influence
from tiebreak.verdict.statistics import example_interval

MEAN = MetricEntry(goal="max")
RATIO = MetricEntry(goal="min", functional="ratio", weight="weight_tokens")
EXPONENTIAL = MetricEntry(goal="min", functional="exp-ratio", of="loss", weight="weight_tokens")
Array = NDArray[np.float64]

quick = settings(max_examples=60, deadline=None, derandomize=True)
examples = st.lists(
    st.tuples(st.floats(0, 5, allow_subnormal=False), st.integers(1, 50)), min_size=2, max_size=40
)  # (metric of the example alone, weight)


def score(entry: MetricEntry, values: Array, weights: Array) -> float:
    """The metric of a test set, written out."""
    if entry.functional == "mean":
        return float(values.mean())
    ratio = float((values * weights).sum() / weights.sum())
    return math.exp(ratio) if entry.functional == "exp-ratio" else ratio


@quick
@given(examples, st.sampled_from([MEAN, RATIO, EXPONENTIAL]))
def test_the_mean_of_the_influence_is_the_score(some: list[tuple[float, int]], entry: MetricEntry) -> None:
    values, weights = np.array(some, dtype=np.float64).T
    assert influence(entry, values, weights).mean() == pytest.approx(score(entry, values, weights), rel=1e-9, abs=1e-12)


@quick
@given(examples)
def test_the_influence_on_a_mean_is_the_value_itself(some: list[tuple[float, int]]) -> None:
    values, _ = np.array(some, dtype=np.float64).T
    assert influence(MEAN, values).tolist() == values.tolist()


@quick
@given(examples, st.integers(1, 20))
def test_with_equal_weights_a_ratio_is_a_mean(some: list[tuple[float, int]], weight: int) -> None:
    values, _ = np.array(some, dtype=np.float64).T
    found = influence(RATIO, values, np.full(len(values), weight))
    assert found == pytest.approx(values, rel=1e-9, abs=1e-9)


@quick
@given(examples, st.sampled_from([RATIO, EXPONENTIAL]))
def test_the_influence_is_the_derivative_by_the_share_of_an_example(
    some: list[tuple[float, int]], entry: MetricEntry
) -> None:
    """More of example j, by e: its numerator and denominator count 1 + e times."""
    values, weights = np.array(some, dtype=np.float64).T
    found, now = influence(entry, values, weights), score(entry, values, weights)
    step = 1e-6
    for place in range(len(values)):
        more = weights * np.where(np.arange(len(values)) == place, 1 + step, 1)
        slope = (score(entry, values, more) - now) / step
        assert (found[place] - now) / len(values) == pytest.approx(slope, rel=1e-3, abs=1e-6 * (1 + now))


def test_an_empty_reference_counts_with_its_edits() -> None:
    """Two wrong letters for nothing, one of four wrong: 3 edits of 4 characters, as `similarity.cer` counts."""
    assert influence(RATIO, [2.0, 0.25], [0, 4]).mean() == pytest.approx(3 / 4)


def test_nothing_to_divide_by_is_no_number() -> None:
    assert np.isnan(influence(RATIO, [0.0, 0.0], [0, 0])).all()


def test_a_ratio_takes_a_weight_for_each_example() -> None:
    with pytest.raises(ValueError, match="weights"):
        influence(RATIO, [1.0])
    with pytest.raises(ValueError, match="weight"):
        influence(RATIO, [1.0, 2.0], [1.0])


def test_every_ratio_of_the_registry_names_its_weight() -> None:
    for task in TASKS.values():
        for entry in task.metrics.values():
            assert (entry.functional == "mean") == (entry.weight == "")
            assert not entry.weight or entry.weight.startswith("weight_")
            assert not entry.of or entry.of in task.metrics


def sentences(source: np.random.Generator, size: int) -> tuple[Array, Array, Array]:
    """Weights, and the loss per token of two designs: longer texts are harder, and both find the same ones hard."""
    weights = source.integers(5, 60, size).astype(np.float64)
    hard = 0.5 + weights / 60 + 0.4 * source.random(size)
    a, b = (level + hard + 0.3 * source.standard_normal(size) for level in (0.6, 0.5))
    return weights, a, b


def interval(entry: MetricEntry, weights: Array, a: Array, b: Array) -> tuple[float, float]:
    found = example_interval(influence(entry, a, weights)[None], influence(entry, b, weights)[None])
    assert found is not None
    return found


@pytest.mark.parametrize("entry", [RATIO, EXPONENTIAL], ids=["ratio", "exp-ratio"])
def test_the_interval_agrees_with_a_bootstrap_over_examples(entry: MetricEntry) -> None:
    source = np.random.default_rng(3)
    size, draws = 1_000, 4_000
    weights, a, b = sentences(source, size)
    low, high = interval(entry, weights, a, b)
    drawn = source.integers(0, size, (draws, size))
    differences = [score(entry, a[rows], weights[rows]) - score(entry, b[rows], weights[rows]) for rows in drawn]
    spread = float(np.std(differences))
    assert (high - low) / (2 * 1.959964) == pytest.approx(spread, rel=4 / math.sqrt(2 * draws) + 0.02)
    assert (low + high) / 2 == pytest.approx(score(entry, a, weights) - score(entry, b, weights), abs=1e-9)


@pytest.mark.parametrize("entry", [RATIO, EXPONENTIAL], ids=["ratio", "exp-ratio"])
def test_intervals_cover_the_difference_on_all_texts_95_percent_of_the_time(entry: MetricEntry) -> None:
    repeats, size = 2_000, 300
    everything = sentences(np.random.default_rng(4), 1_000_000)
    truth = score(entry, everything[1], everything[0]) - score(entry, everything[2], everything[0])
    source = np.random.default_rng(5)
    covered = []
    for _ in range(repeats):
        low, high = interval(entry, *sentences(source, size))
        covered.append(low <= truth <= high)
    assert abs(np.mean(covered) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / repeats)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.verdict import statistics
from tiebreak.verdict.percentile import from_interval, percentile

SCORES = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=20)


@given(SCORES, st.floats(-200, 200))
def test_a_figure_is_inside_the_prediction_interval_where_its_percentile_is_central(
    scores: list[float], value: float
) -> None:
    low, high = statistics.prediction_interval(scores) or (0.0, 0.0)
    found = percentile(scores, value)
    assert found is not None
    if min(abs(value - low), abs(value - high)) > 1e-6:
        assert (low <= value <= high) == (2.5 <= found <= 97.5)


@given(SCORES, st.floats(-200, 200))
def test_the_interval_alone_gives_the_same_percentile(scores: list[float], value: float) -> None:
    _, high = statistics.prediction_interval(scores) or (0.0, 0.0)
    mean = float(np.mean(scores))
    if high - mean > 1e-6:
        assert from_interval(mean, high, len(scores), value) == pytest.approx(percentile(scores, value), abs=1e-3)


def test_a_fresh_run_falls_below_the_percentile_that_often() -> None:
    random = np.random.default_rng(0)
    below = [percentile(list(draw[:6]), draw[6]) or 0.0 for draw in random.normal(size=(4000, 7))]
    for level in (5, 50, 90):
        assert np.mean(np.array(below) < level) == pytest.approx(level / 100, abs=0.025)


def test_runs_without_spread_and_too_few_runs() -> None:
    assert percentile([0.5], 0.5) is None
    assert [percentile([0.5, 0.5], value) for value in (0.4, 0.5, 0.6)] == [0.0, 50.0, 100.0]

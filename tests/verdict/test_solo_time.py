from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import hand_made
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.verdict.solo_time import median_ratio, solo_seconds, time_ratio

TIMES = st.lists(st.floats(0.01, 100), min_size=6, max_size=40)


@given(a=TIMES, b=TIMES)
def test_the_ratio_lies_in_its_interval_and_turns_with_its_sides(a: list[float], b: list[float]) -> None:
    n = min(len(a), len(b))
    found, back = median_ratio(a[:n], b[:n]), median_ratio(b[:n], a[:n])
    assert found is not None
    assert back is not None
    middle, low, high = found
    assert low <= middle <= high
    assert (low, high) == pytest.approx((1 / back[2], 1 / back[1]))


@pytest.mark.parametrize(("rounds", "place"), [(6, 0), (8, 0), (9, 1), (15, 3), (30, 9)])
def test_the_interval_ends_at_ordered_ratios(rounds: int, place: int) -> None:
    found = median_ratio(range(1, rounds + 1), [1.0] * rounds)
    assert found is not None
    assert found[1:] == (place + 1, rounds - place)


def test_the_interval_covers_the_median_whatever_the_noise() -> None:
    stream, missed = np.random.default_rng(0), 0
    for _ in range(2000):
        noise = np.exp(stream.exponential(size=(2, 15)))  # other work only ever slows down
        found = median_ratio(list(1.14 * noise[0]), list(noise[1]))
        assert found is not None
        missed += not found[1] <= 1.14 <= found[2]
    assert missed / 2000 < 0.05


def test_too_few_rounds_say_nothing() -> None:
    assert median_ratio([1.0] * 5, [1.0] * 5) is None
    assert median_ratio([], []) is None


def tally(**strided: Any) -> Tally:
    """Two arms whose steps were timed in turns: pool 3 ms, strided 1.5 ms."""
    study = hand_made.study()
    plan = hand_made.plan(study)
    runs = {
        identity: dataclasses.replace(hand_made.RUN, identity=identity, status="diverged", provenance={"device": "cpu"})
        for identity in plan.runs
    }
    times = {}
    for arm, changes in (("pool", {"ms": (3.0,) * 6}), ("strided", {"ms": (1.5,) * 6} | strided)):
        cohort = plan.runs[next(iter(plan.arm(arm).runs.values()))].cohort
        times[cohort, "cpu"] = dataclasses.replace(hand_made.TIMES, cohort=cohort, device="cpu", **changes)
    return Tally(study, plan, Records(epochs={}, runs=runs, finals={}, step_times=times))


def test_training_alone_is_that_of_all_steps() -> None:
    assert solo_seconds(tally(), "pool") == pytest.approx(0.003 * 4 * 2)  # steps of an epoch, epochs
    assert solo_seconds(tally(ms=()), "strided") is None


def test_arms_are_compared_by_their_whole_training() -> None:
    assert time_ratio(tally(), "pool", "strided") == pytest.approx((2.0, 2.0, 2.0))
    assert time_ratio(tally(steps=8), "pool", "strided") == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize("changes", [{"group": "another"}, {"ms": ()}, {"ms": (1.0,) * 7}])
def test_arms_that_were_not_timed_together_are_not_compared(changes: dict[str, Any]) -> None:
    assert time_ratio(tally(**changes), "pool", "strided") is None

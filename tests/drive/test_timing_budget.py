from __future__ import annotations

from dataclasses import replace

import pytest

from support import hand_made
from tiebreak.drive.timing_budget import needs_timing, timing_seconds, training_seconds
from tiebreak.plan.runs import cohorts

RUNS = cohorts(hand_made.plan(hand_made.study()).runs.values())  # two cohorts of six runs, two epochs, batches of 8


@pytest.mark.parametrize(
    ("arms", "training", "seconds"), [(2, 0.0, 1.0), (2, 60.0, 3.0), (2, 1e6, 4.0), (9, 1e6, 10.0)]
)
def test_timing_takes_a_share_of_the_training_within_limits(arms: int, training: float, seconds: float) -> None:
    assert timing_seconds(arms, training) == pytest.approx(seconds)


def test_the_training_that_is_left_is_predicted_from_its_steps() -> None:
    assert training_seconds(RUNS, dict.fromkeys(RUNS, 2.0), 20) == pytest.approx(0.002 * 3 * 2 * 12)


def test_arms_are_timed_where_one_has_no_times_or_others_were_timed_with_it() -> None:
    a, b = RUNS
    known = {(key, "cpu"): replace(hand_made.TIMES, cohort=key, device="cpu") for key in RUNS}
    assert not needs_timing([a, b], RUNS, known, "cpu")
    assert needs_timing([a, b], RUNS, known, "cuda")
    assert needs_timing([a, b, "third"], RUNS, known, "cpu")
    assert needs_timing([a, b], RUNS, known | {(b, "cpu"): replace(hand_made.TIMES, group="another")}, "cpu")
    assert not needs_timing([a], RUNS, {}, "cpu")
    assert not needs_timing([a, b], {a: RUNS[a][:1], b: RUNS[b][:1]}, {}, "cpu")

"""Training time of a run alone: its steps, timed in turns with those of the other arms. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np
from scipy.special import bdtr

from tiebreak.results.record import StepTimes
from tiebreak.results.tally import Tally

CONFIDENCE = 0.95


def solo_seconds(tally: Tally, arm: str) -> float | None:
    """The training of one run alone at the arm's chosen setting, to its last planned epoch; no evaluation."""
    times = tally.step_times(arm, tally.chosen(arm))
    return median(times.ms) / 1000 * _steps(tally, arm, times) if times is not None and times.ms else None


def time_ratio(tally: Tally, a: str, b: str) -> tuple[float, float, float] | None:
    """How many times as long arm a trains as arm b, with its interval; None where they were not timed in turns.

    Two arms that are trained alike have the same steps: nothing is to be told apart.
    """
    first, second = (tally.step_times(arm, tally.chosen(arm)) for arm in (a, b))
    if first is None or second is None or first.group != second.group or first.cohort == second.cohort:
        return None
    share = _steps(tally, a, first) / max(1, _steps(tally, b, second))
    found = median_ratio(first.ms, second.ms)
    return None if found is None else (found[0] * share, found[1] * share, found[2] * share)


def median_ratio(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float] | None:
    """The median of a_i / b_i over rounds i and its 95 % interval, two of the ordered ratios, for any distribution.

    Of n rounds, the k-th smallest and the k-th largest miss the median with probability 2 P(Binomial(n, 1/2) < k). None
    where even the extremes (k = 1) miss it in more than 5 %: below six rounds.
    """
    if len(a) != len(b) or len(a) == 0 or 1 - 2 * float(bdtr(0, len(a), 0.5)) < CONFIDENCE:
        return None
    n, ratios = len(a), np.sort(np.asarray(a, dtype=np.float64) / np.asarray(b, dtype=np.float64))
    k = max(each for each in range(1, n // 2 + 1) if 1 - 2 * float(bdtr(each - 1, n, 0.5)) >= CONFIDENCE)
    return float(np.median(ratios)), float(ratios[k - 1]), float(ratios[n - k])


def _steps(tally: Tally, arm: str, times: StepTimes) -> int:
    identity = next(iter(tally.plan.arm(arm).runs.values()))
    return times.steps * tally.plan.runs[identity].epochs

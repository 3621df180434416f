"""Where a published figure lies among single runs of ours: the chance that a fresh run scores below it."""

from __future__ import annotations

import math

from scipy.special import stdtr, stdtrit

from tiebreak.verdict.compared import checked

LEVEL = 0.975  # of each end of a 95 % prediction interval


def percentile(scores: list[float], value: float) -> float | None:
    """The chance in per cent that a fresh run scores below `value`, by Student's t; None below two scores.

    The figure lies inside the 95 % prediction interval exactly where this is between 2.5 and 97.5.
    """
    values = checked(scores)
    if len(values) < 2:
        return None
    n, mean, sd = len(values), float(values.mean()), float(values.std(ddof=1))
    return _chance(value - mean, sd * math.sqrt(1 + 1 / n), n)


def from_interval(mean: float, end: float, n: int, value: float) -> float:
    """The same from the mean and one end of the 95 % prediction interval of n runs, where the runs are not at hand."""
    return _chance(value - mean, abs(end - mean) / float(stdtrit(n - 1, LEVEL)), n)


def _chance(difference: float, spread: float, n: int) -> float:
    if spread == 0:
        return 50.0 if difference == 0 else 100.0 if difference > 0 else 0.0
    return 100 * float(stdtr(n - 1, difference / spread))

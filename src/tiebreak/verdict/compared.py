"""The result of a comparison, and what every kind of comparison shares: the interval's cut at 0, the seeds needed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scores = NDArray[np.float64]
Interval = tuple[float, float]
Goal = Literal["max", "min"]
Outcome = Literal["a", "b", "same", "undecided"]
Test = Literal["paired-t", "welch", "wilcoxon"]

LARGEST = 1e100  # a score beyond it would overflow when squared
POWER, MOST_SEEDS = 0.8, 100_000  # of the test with the seeds still needed, and where that search ends


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One comparison. Differences are a minus b in the metric's own unit, whatever the goal."""

    difference: float | None
    low: float | None = None  # simultaneous over the comparisons of the call; an end of exactly 0 is open
    high: float | None = None
    p: float | None = None  # of `test`, two-sided
    p_adjusted: float | None = None  # Holm over the comparisons of the call
    p_sign_flip: float | None = None  # not adjusted; paired seeds only
    p_permutation: float | None = None  # not adjusted; unpaired seeds only
    same_low: float | None = None  # interval of the two one-sided tests: 90 % for alpha 0.05
    same_high: float | None = None
    p_a_better: float | None  # chance that a fresh run of a beats a fresh run of b
    verdict: Outcome = "undecided"
    seeds: int
    seeds_needed: int | None = None  # how many more; None when decided or when MOST_SEEDS would not do
    flags: tuple[str, ...] = ()
    skewness: float | None = None  # of lopsided differences, without its sign
    test: Test = "paired-t"
    runs: tuple[int, int] | None = None  # of a and b, where they are not paired; `seeds` is then the smaller number


def checked(values: ArrayLike) -> Scores:
    """The scores as an array; those that cannot be compared are refused."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.all(np.abs(array) <= LARGEST):
        raise ValueError(f"scores should be a list of finite numbers up to {LARGEST:g}; leave diverged runs out")
    return array


def chance_a_better(a: ArrayLike, b: ArrayLike, goal: Goal = "max") -> float | None:
    """P(a fresh run of a beats a fresh run of b): the share of all pairs (i, j) where it does, ties as half."""
    first, second = checked(a), np.sort(checked(b))
    if not len(first) or not len(second):
        return None
    below = np.searchsorted(second, first, "left") + np.searchsorted(second, first, "right")
    above = float(below.sum()) / (2 * len(first) * len(second))
    return above if goal == "max" else 1 - above


def cut_at_zero(interval: Interval, rejected: bool) -> Interval:
    """A simultaneous interval, cut at 0 where only Holm's step rejects: it excludes 0 when Holm's p <= alpha."""
    low, high = interval
    if rejected:
        return (max(low, 0.0), high) if low + high > 0 else (low, min(high, 0.0))
    return (low, high) if low == high else (min(low, -math.ulp(0.0)), max(high, math.ulp(0.0)))  # in spite of rounding


def least_total(enough: Callable[[int], bool], n: int, least: int) -> int | None:
    """How many more than n are enough, at least `least` in all; None where MOST_SEEDS would not do."""
    totals = range(max(n + 1, least), MOST_SEEDS + 1)
    below, end = 0, 1  # doubled until it is enough: mostly few more are needed
    while end < len(totals) and not enough(totals[end - 1]):
        below, end = end, 2 * end
    found = bisect_left(totals, True, below, min(end, len(totals)), key=enough)
    return totals[found] - n if found < len(totals) else None

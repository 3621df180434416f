"""Growth from measurements: the exponent of a power law, and where two curves cross. Pure functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tiebreak.errors import TiebreakError

CONFIDENCE = 0.95


def fit_exponent(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float, float]:
    """The exponent b of y = a x^b with its 95 % interval: least squares on logarithms, Student's t with n - 2 degrees.

    Two points give an exponent without an interval: its ends are NaN.

    >>> fit_exponent([1, 2, 4, 8], [3, 12, 48, 192])
    (2.0, 2.0, 2.0)
    """
    if len(xs) != len(ys) or len(set(xs)) < 2 or min([*xs, *ys]) <= 0:
        raise TiebreakError("an exponent needs two or more different sizes with positive values")
    logs = [math.log(x) for x in xs]
    values = [math.log(y) for y in ys]
    n, mean, level = len(logs), math.fsum(logs) / len(logs), math.fsum(values) / len(values)
    spread = math.fsum((x - mean) ** 2 for x in logs)
    slope = math.fsum((x - mean) * (y - level) for x, y in zip(logs, values, strict=True)) / spread
    slope = round(slope, 12) + 0.0  # never -0.0
    if n == 2:
        return slope, math.nan, math.nan
    from scipy.special import stdtrit

    rest = math.fsum((y - level - slope * (x - mean)) ** 2 for x, y in zip(logs, values, strict=True))
    half = float(stdtrit(n - 2, (1 + CONFIDENCE) / 2)) * math.sqrt(rest / (n - 2) / spread)
    return slope, round(slope - half, 12), round(slope + half, 12)


def crossover(xs: Sequence[float], first: Sequence[float], second: Sequence[float]) -> tuple[float, bool] | None:
    """From where on one curve stays below the other, and whether that is the second; None when it always was.

    Between two points both are power laws. Where curves cross several times, the last time counts.

    >>> crossover([1, 10, 100], [1, 100, 10000], [10, 100, 1000])[1]
    True
    """
    gaps = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    second_wins = gaps[-1] > 0
    for i in range(len(gaps) - 1, 0, -1):
        if (gaps[i - 1] > 0) != second_wins:
            share = gaps[i - 1] / (gaps[i - 1] - gaps[i])
            return math.exp(math.log(xs[i - 1]) + share * math.log(xs[i] / xs[i - 1])), second_wins
    return None


def crossings(first: Sequence[float], second: Sequence[float]) -> int:
    """How often the curves change sides. More than once, with measured curves, usually means noise.

    >>> crossings([1, 3, 1, 3], [2, 2, 2, 2])
    3
    """
    sides = [a > b for a, b in zip(first, second, strict=True)]
    return sum(before != after for before, after in pairwise(sides))

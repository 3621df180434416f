"""Skewed differences of mean 0: how often does each 95 % interval miss the truth? Part of `make truth`.

t: Student's. Johnson: t of a mean corrected for skewness (1978), as a test of 0. Hall: his monotone transformation with
the t quantile (1992). Bootstrap-t: quantiles of t over resamples. Wider: where both t and Hall's
interval miss. Ours: Hall's has to miss only where the estimated skewness is beyond `verdict.skewness`'s bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from tiebreak.verdict.skewness import is_lopsided

Array = NDArray[np.float64]
SEEDS = (6, 8, 10, 14, 20, 32, 60)
LEVEL = 0.05
RESAMPLES, BOOTSTRAPPED = 399, 1_000
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda stream, size: stream.standard_normal(size),
    "t3": lambda stream, size: stream.standard_t(3, size),
    "exponential difference": lambda stream, size: stream.exponential(size=size) - stream.exponential(size=size),
    "exponential": lambda stream, size: stream.exponential(size=size) - 1,
    "lognormal": lambda stream, size: stream.lognormal(size=size) - math.exp(0.5),
}


def moments(rows: Array) -> tuple[Array, Array, Array]:
    """Mean, sd and estimated skewness g1 of each row."""
    mean = rows.mean(1)
    centred = rows - mean[:, None]
    second = (centred**2).mean(1)
    return mean, rows.std(1, ddof=1), (centred**3).mean(1) / second**1.5


def p_t(rows: Array) -> Array:
    """Two-sided p of Student's t."""
    mean, sd, _ = moments(rows)
    n = rows.shape[1]
    return np.asarray(2 * stdtr(n - 1, -np.abs(mean) * math.sqrt(n) / sd))


def p_johnson(rows: Array) -> Array:
    """Of Johnson's modified t."""
    mean, sd, skew = moments(rows)
    n = rows.shape[1]
    third = skew * sd**3
    t = (mean + third / (6 * sd**2 * n) + third * mean**2 / (3 * sd**4)) * math.sqrt(n) / sd
    return np.asarray(2 * stdtr(n - 1, -np.abs(t)))


def p_hall(rows: Array) -> Array:
    """Of Hall's transformed t."""
    mean, sd, skew = moments(rows)
    n = rows.shape[1]
    s = mean / sd
    g = s + skew * s**2 / 3 + skew**2 * s**3 / 27 + skew / (6 * n)
    return np.asarray(2 * stdtr(n - 1, -np.abs(g) * math.sqrt(n)))


def p_bootstrap(rows: Array, stream: np.random.Generator) -> Array:
    """Of the bootstrap-t: twice the smaller share of resampled t beyond the one found."""
    n, found = rows.shape[1], []
    for row in rows:
        drawn = row[stream.integers(0, n, (RESAMPLES, n))]
        spread = drawn.std(1, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(spread > 0, (drawn.mean(1) - row.mean()) / spread, 0.0)
        own = row.mean() / row.std(ddof=1)
        below = ((t <= own).sum() + 1) / (RESAMPLES + 1)
        above = ((t >= own).sum() + 1) / (RESAMPLES + 1)
        found.append(min(1.0, 2 * min(below, above)))
    return np.array(found)


def cells(studies: int) -> list[dict[str, object]]:
    """The share of studies in which each method calls a mean of 0 different from 0."""
    found: list[dict[str, object]] = []
    for shape, draw in SHAPES.items():
        for n in SEEDS:
            stream = np.random.default_rng([19, n])
            rows = draw(stream, (studies, n))
            t, hall = p_t(rows), p_hall(rows)
            ours = (t <= LEVEL) & ((hall <= LEVEL) | ~np.array([is_lopsided(row) for row in rows]))
            found.append(
                {
                    "shape": shape,
                    "seeds": n,
                    "t": round(float((t <= LEVEL).mean()), 4),
                    "johnson": round(float((p_johnson(rows) <= LEVEL).mean()), 4),
                    "hall": round(float((hall <= LEVEL).mean()), 4),
                    "wider": round(float(((t <= LEVEL) & (hall <= LEVEL)).mean()), 4),
                    "ours": round(float(ours.mean()), 4),
                    "bootstrap_t": round(float((p_bootstrap(rows[:BOOTSTRAPPED], stream) <= LEVEL).mean()), 3),
                }
            )
    return found

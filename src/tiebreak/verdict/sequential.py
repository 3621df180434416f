"""Looking more than once: how much of the error each look at a growing study may spend. Pure functions.

A look is a verdict on the first n seeds. Alpha spending (Lan and DeMets, 1983) divides alpha over the looks: g(n) is
the share spent by n seeds, g(end) = 1 - RESERVE at the planned end, and what is left is for looks after it. The
boundary of each look follows from the joint normal distribution of the z-values of all looks so far; its two-sided
level is then used with Student's t (Jennison and Turnbull, 2000, section 4.4). `benchmarks/truth.py` simulates what
this promises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

GROWTH = 1.5  # from one look to the next
SLOW_GROWTH = 4 / 3  # where the end is near: with 6 seeds first and 20 at most, half as many again would skip 11
NEAR = (2.5, 4.0)  # times the first look
FIRST = 0.1  # share of the error that the first look spends, so that a large difference is found at once
EXPONENT = 3  # of the seeds, for the rest until the planned end
RESERVE = 0.1  # share that is left at the planned end; each look after it spends half of what remains
POINTS = (101, 2001)  # of the density between two boundaries, least and most; odd, for Simpson's rule
SETTLED, ROUNDING = 1e-9, 2e-14  # of a boundary, relative: Newton's last step, and more than its error by rounding
STEP = 0.5  # between two of them: half the standard deviation of one more seed
LEVELS = np.concatenate((np.geomspace(1e-9, 1e-3, 13)[:-1], np.geomspace(1e-3, 1.0, 25)))  # interpolated between


def look_sizes(first: int, end: int, after: int | None = None) -> tuple[int, ...]:
    """Seeds at each look: the least number, then half as many again (a third where the end is near), until `end`.

    A last step of less than a quarter is joined to the one before it. `after`: from this look on.
    """
    if not 2 <= first <= end:
        raise ValueError(f"the first look should have at least 2 and at most {end} seeds, not {first}")
    growth = SLOW_GROWTH if NEAR[0] * first <= end < NEAR[1] * first else GROWTH
    sizes = [first if after is None else after]
    while sizes[-1] < end:
        following = math.ceil(round(sizes[-1] * growth, 9))
        sizes.append(end if 1.25 * following > end else following)
    return tuple(sizes)


@dataclass(frozen=True)
class Looks:
    """The looks at a study so far, the last one now. A study that is looked at once, as planned: `Looks((n,), n)`.

    A look at fewer seeds than one before it spends as one after the end does, by Bonferroni's bound. So does one at as
    many seeds, after failed runs were tried again; its boundary follows from both, as from `pairs` to all seeds.
    """

    seeds: tuple[int, ...]  # in the order of the looks
    end: int  # the planned number of seeds
    pairs: tuple[int, ...] = ()  # of each look, fewer where runs had failed; none: as many as seeds

    def __post_init__(self) -> None:
        if not self.seeds or min(self.seeds) < 2:
            raise ValueError(f"looks should be at numbers of seeds from 2, not {self.seeds}")
        if self.pairs and len(self.pairs) != len(self.seeds):
            raise ValueError(f"pairs should be those of {len(self.seeds)} looks, not {self.pairs}")

    def level(self, alpha: float) -> float:
        """The two-sided level of a test at this look, such that all looks together err with at most `alpha`."""
        if not 0 < alpha <= 1:
            raise ValueError(f"alpha should be above 0 and at most 1, not {alpha}")
        seeds, shares = self._growing()
        if len(shares) == 1:
            return alpha * shares[0]
        bound = _bound(seeds, tuple(alpha * share for share in shares))
        return float(2 * ndtr(-bound / math.sqrt(seeds[-1])))

    def after(self, seeds: int) -> Looks:
        """The next look, at so many seeds; one that was made before is the same again."""
        known = self.seeds.index(seeds) if seeds in self.seeds else len(self.seeds)
        pairs = (*self.pairs[:known], seeds) if self.pairs else ()
        return Looks((*self.seeds[:known], seeds), self.end, pairs)

    def until(self, look: int) -> Looks:
        """The looks as they stood at one of them."""
        return Looks(self.seeds[: look + 1], self.end, self.pairs[: look + 1])

    def _growing(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Seeds and shares of the looks that decide the level of this one: it alone if one before it had more seeds."""
        shares, now = spent(self.seeds, self.end), self.seeds[-1]
        first = self.seeds.index(now)  # of the looks at so many seeds
        pairs = self.pairs[first] if self.pairs else now
        if now == max(self.seeds) and 2 <= pairs < now and first < len(self.seeds) - 1:
            return (pairs, now), (shares[first], shares[-1])
        if now < max(self.seeds) or first < len(self.seeds) - 1:
            return self.seeds[-1:], shares[-1:]
        kept = [k for k, seeds in enumerate(self.seeds) if seeds > max(self.seeds[:k], default=0)]
        return tuple(self.seeds[k] for k in kept), tuple(shares[k] for k in kept)

    def adjusted(self, p: float) -> float:
        """The p-value of this look as one of a sequence: the smallest alpha whose level at this look is at least p."""
        if p <= 0:
            return 0.0
        low, high = math.log(p), 0.0  # spending only makes levels smaller, so alpha >= p
        if self._nominal(1.0) < p:
            return 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self._nominal(math.exp(middle)) < p else (low, middle)
        return math.exp(high)

    def _nominal(self, alpha: float) -> float:
        seeds, shares = self._growing()
        if len(shares) == 1:
            return alpha * shares[0]
        table = _level_table(seeds, shares)
        return float(np.exp(np.interp(math.log(alpha), np.log(LEVELS), table)))


def spent(seeds: tuple[int, ...], end: int) -> tuple[float, ...]:
    """The share of alpha that each look spends. They sum to less than 1, however many looks there are."""
    planned, others, shares, first, most = 0.0, 0.0, [], min(seeds[0], end), 0
    for n in seeds:
        done = planned + others
        if most < n <= end:
            rest = (n**EXPONENT - first**EXPONENT) / (end**EXPONENT - first**EXPONENT) if end > first else 1.0
            total = (1 - RESERVE) * (FIRST + (1 - FIRST) * rest)
            shares.append(total - planned)
            planned = total
        elif n > most:
            total = done + (1 - done) / 2
            shares.append(total - done)
            planned = total - others
        else:  # fewer seeds than before: the looks that are planned keep their shares
            shares.append(((1 - done) if most > end else (RESERVE - others)) / 2)
            others += shares[-1]
        most = max(most, n)
    return tuple(shares)


def boundaries(seeds: tuple[int, ...], errors: tuple[float, ...]) -> NDArray[np.float64]:
    """z_k with P(|Z_j| < z_j for all j < k and |Z_k| >= z_k) = errors[k], for the mean of seeds[k] standard normals."""
    return np.array([_bound(seeds[: k + 1], errors[: k + 1]) / math.sqrt(n) for k, n in enumerate(seeds)])


@lru_cache(maxsize=4096)
def _bound(seeds: tuple[int, ...], errors: tuple[float, ...]) -> float:
    """The boundary of the last look, for the sum of its seeds."""
    points, masses, before = _undecided(seeds[:-1], errors[:-1])
    return _crossing(points, masses, math.sqrt(seeds[-1] - before), errors[-1])


@lru_cache(maxsize=256)
def _undecided(
    seeds: tuple[int, ...], errors: tuple[float, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Where the sum lies after these looks if it crossed no boundary: points, their probabilities, the seeds so far."""
    if not seeds:
        return np.zeros(1), np.ones(1), 0
    points, masses, before = _undecided(seeds[:-1], errors[:-1])
    bound, sd = _bound(seeds, errors), math.sqrt(seeds[-1] - before)
    grid = np.linspace(-bound, bound, min(max(2 * math.ceil(bound / STEP) + 1, POINTS[0]), POINTS[1]))
    density = np.exp(-0.5 * ((grid[:, None] - points) / sd) ** 2) @ masses / (sd * math.sqrt(2 * math.pi))
    return grid, density * _simpson(grid), seeds[-1]


def _crossing(points: NDArray[np.float64], masses: NDArray[np.float64], sd: float, error: float) -> float:
    """The b at which a normal step of `sd` from these points leaves (-b, b) with probability `error`.

    By bisection; where its side is known from Newton's root (`_near_crossing`), nothing is computed.
    """
    low, high = 0.0, float(np.abs(points).max()) + 40 * sd
    below, above = _near_crossing(points, masses, sd, error, high)
    for _ in range(60):
        middle = (low + high) / 2
        if middle in (low, high):
            break  # neighbours: nothing lies between them
        if below <= middle <= above:
            outside = float(masses @ (ndtr((points - middle) / sd) + ndtr((-points - middle) / sd)))
            low, high = (middle, high) if outside > error else (low, middle)
        else:
            low, high = (middle, high) if middle < below else (low, middle)
    return (low + high) / 2


def _near_crossing(
    points: NDArray[np.float64], masses: NDArray[np.float64], sd: float, error: float, most: float
) -> tuple[float, float]:
    """Two numbers with the crossing between them, close to each other, or (0, most) where Newton's steps do not settle.

    The logarithm of the probability is concave and falls: after the first step they come from above.
    """
    mean_square = float(masses @ points**2) / float(masses.sum())
    b = -float(ndtri(min(error, 1.0) / 2)) * math.sqrt(mean_square + sd * sd)
    for _ in range(20):
        near, far = (points - b) / sd, (-points - b) / sd
        outside = float(masses @ (ndtr(near) + ndtr(far)))
        slope = float(masses @ (np.exp(-0.5 * near * near) + np.exp(-0.5 * far * far))) / (sd * math.sqrt(2 * math.pi))
        if not (outside > 0 and slope > 0):
            break
        step = outside * math.log(outside / error) / slope
        b += step
        if abs(step) <= SETTLED * b:  # the next one would be its square
            return b - ROUNDING * (b + sd), b + ROUNDING * (b + sd)
    return 0.0, most


def _simpson(grid: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.full(len(grid), 2.0)
    weights[1::2] = 4.0
    weights[0] = weights[-1] = 1.0
    return np.asarray(weights * (grid[1] - grid[0]) / 3)


@lru_cache(maxsize=256)
def _level_table(seeds: tuple[int, ...], shares: tuple[float, ...]) -> NDArray[np.float64]:
    """Logarithms of the nominal level of the last look, for each alpha of LEVELS."""
    last = [boundaries(seeds, tuple(alpha * share for share in shares))[-1] for alpha in LEVELS]
    return np.asarray(np.log(2 * ndtr(-np.array(last))))

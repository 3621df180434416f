"""Two arms whose runs share no seeds: Welch's t-test and a permutation test. Pure functions of numpy arrays.

Symbols: n_a, n_b runs; v_a, v_b their variances (n - 1); D = mean(a) - mean(b); se = sqrt(v_a / n_a + v_b / n_b);
df = se^4 / ((v_a / n_a)^2 / (n_a - 1) + (v_b / n_b)^2 / (n_b - 1)), Welch and Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtr, stdtr, stdtrit

from tiebreak.verdict.compared import POWER, Compared, Goal, Outcome, chance_a_better, cut_at_zero, least_total

Values = NDArray[np.float64]

EXACT = 2**16  # all ways to split the runs into two groups are tried up to here, and random ones drawn above
CELLS = 20_000_000  # of the table of drawn splits
MOST_RUNS = 20_000  # above, the permutation test is left out: the t-test's assumptions hardly matter there


@dataclass(frozen=True, kw_only=True)
class Welch:
    """The difference of two means, with its standard error and degrees of freedom (infinite without spread)."""

    difference: float
    se: float
    df: float

    @property
    def p(self) -> float:
        """Two-sided p: 2 · P(T < -|D| / se). Without spread 0, or 1 if D = 0."""
        return float(2 * stdtr(self.df, -abs(self.difference) / self.se)) if self.se else float(self.difference == 0)

    def interval(self, level: float) -> tuple[float, float]:
        """D ± t(1 - level / 2) · se."""
        half = -float(stdtrit(self.df, level / 2)) * self.se if self.se else 0.0
        return self.difference - half, self.difference + half


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What all comparisons of a call share: how many they are, the smallest difference that matters, the error rate."""

    comparisons: int
    margin: float
    alpha: float


def welch(a: Values, b: Values) -> Welch:
    """Welch's comparison of two means; at least two runs of each."""
    parts = [float(values.var(ddof=1)) / len(values) for values in (a, b)]
    difference = float(a[0] - b[0] + ((a - a[0]).mean() - (b - b[0]).mean()))
    below = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    return Welch(difference=difference, se=math.sqrt(sum(parts)), df=sum(parts) ** 2 / below if below else math.inf)


def permutation_p(a: Values, b: Values) -> float | None:
    """Two-sided p of the permutation test: the share of splits of all runs whose Welch t is at least as large.

    All splits up to 65,536 of them; above, (hits + 1) / (draws + 1) of a fixed random stream. None above 20,000 runs.
    """
    n = len(a) + len(b)
    if n > MOST_RUNS:
        return None
    every = math.comb(n, len(a)) <= EXACT
    chosen = _splits(len(a), len(b), every)
    values = np.concatenate((a, b))
    values = (values - values.mean()) / (float(np.abs(values - values.mean()).max()) or 1.0)
    own = np.zeros((1, n), dtype=np.float32)
    own[0, : len(a)] = 1
    least = float(_t(own, values)[0]) * (1 - 1e-6)  # splits that differ by rounding are equal
    hits = sum(
        int(np.count_nonzero(_t(chosen[start : start + EXACT], values) >= least))
        for start in range(0, len(chosen), EXACT)
    )
    return hits / len(chosen) if every else (hits + 1) / (len(chosen) + 1)


def _t(chosen: NDArray[np.float32], values: Values) -> Values:
    """|t| of each split; without spread infinite, or 0 where the means are equal."""
    first = chosen.sum(axis=1)[:1]
    n_a, n_b = float(first[0]), float(len(values) - first[0])
    sums, squares = chosen @ values, chosen @ values**2
    mean_a, mean_b = sums / n_a, (values.sum() - sums) / n_b
    var_a = np.maximum(squares / n_a - mean_a**2, 0) / max(n_a - 1, 1)
    var_b = np.maximum(((values**2).sum() - squares) / n_b - mean_b**2, 0) / max(n_b - 1, 1)
    gap, se = np.abs(mean_a - mean_b), np.sqrt(var_a + var_b)
    flat = se <= 1e-9
    return np.asarray(np.where(flat, np.where(gap <= 1e-9, 0.0, np.inf), gap / np.where(flat, 1.0, se)))


@lru_cache(maxsize=4)
def _splits(n_a: int, n_b: int, every: bool) -> NDArray[np.float32]:
    """Splits [splits, runs]: 1 for a run of the first group."""
    n = n_a + n_b
    if every:
        chosen = np.array(list(itertools.combinations(range(n), n_a)), dtype=np.int64).reshape(-1, n_a)
    else:
        draws = max(999, min(EXACT - 1, CELLS // n))
        chosen = np.random.default_rng(0).random((draws, n)).argpartition(n_a - 1, axis=1)[:, :n_a]
    found = np.zeros((len(chosen), n), dtype=np.float32)
    np.put_along_axis(found, chosen, 1, axis=1)
    return found


def least_runs(comparisons: int, alpha: float = 0.05) -> int:
    """The smallest n with 2 / C(2n, n) <= alpha / m: with fewer of each, the permutation test cannot reject."""
    return next(n for n in range(2, 1100) if enough(n, n, comparisons, alpha))


def enough(n_a: int, n_b: int, comparisons: int, alpha: float = 0.05) -> bool:
    """Whether the permutation test of so many runs can reject after Holm; at least two of each for a variance."""
    return min(n_a, n_b) >= 2 and 2 / math.comb(n_a + n_b, n_a) <= alpha / comparisons


def powers(found: Welch, a: Values, b: Values, n: int, margin: float, level: float) -> tuple[float, float]:
    """The chances that n runs of each find a difference (at this level), and that they find none beyond the margin."""
    var_a, var_b = float(a.var(ddof=1)), float(b.var(ddof=1))
    if not var_a + var_b:
        return float(found.difference != 0), float(abs(found.difference) < margin)
    df, scale = (n - 1) * (var_a + var_b) ** 2 / (var_a**2 + var_b**2), math.sqrt(n / (var_a + var_b))
    critical, shift = -float(stdtrit(df, level / 2)), found.difference * scale
    different = _noncentral(df, shift, -critical) + 1 - _noncentral(df, shift, critical)
    inside = -float(stdtrit(df, 0.05))
    below = _noncentral(df, (found.difference - margin) * scale, -inside)
    return different, max(0.0, below - _noncentral(df, (found.difference + margin) * scale, inside))


def _noncentral(df: float, shift: float, t: float) -> float:
    found = float(nctdtr(df, shift, t))
    return float(t > shift) if math.isnan(found) else found  # NaN deep in a tail: 0 or 1


def compared(a: Values, b: Values, p_values: Sequence[float], goal: Goal, terms: Terms) -> Compared:
    """The verdict on independent runs of two arms: Welch's t-test decides. `p_values`: p, adjusted; exact, adjusted."""
    comparisons, margin, alpha = terms.comparisons, terms.margin, terms.alpha
    runs, least, better = (len(a), len(b)), least_runs(comparisons, alpha), chance_a_better(a, b, goal)
    can_reject = enough(*runs, comparisons, alpha)
    n_a, n_b = runs
    short = f"{n_a} and {n_b} unpaired runs are fewer than the {least} of each needed (comparisons: {comparisons})"
    few = () if can_reject else (short,)
    needed = max(least - min(runs), 1)
    if min(runs) < 2:
        difference = float(a.mean() - b.mean()) if min(runs) else None
        return Compared(difference=difference, p_a_better=better, seeds=min(runs), seeds_needed=needed, flags=few,
                        test="welch", runs=runs)  # fmt: skip
    p, p_adjusted, p_permutation, permutation_adjusted = p_values
    found, rejected = welch(a, b), p_adjusted <= alpha
    low, high = cut_at_zero(found.interval(alpha / comparisons), rejected)
    same_low, same_high = found.interval(2 * alpha)
    verdict: Outcome = "undecided"
    if can_reject and -margin < same_low and same_high < margin:
        verdict = "same"
    elif can_reject and rejected:
        verdict = "a" if (found.difference > 0) == (goal == "max") else "b"

    def sufficient(total: int) -> bool:
        return max(powers(found, a, b, total, margin, alpha / comparisons)) >= POWER

    flags = {
        f"only the {'t-test' if rejected else 'permutation test'} finds a difference": can_reject
        and rejected != (permutation_adjusted <= alpha),
        "every run of an arm has the same score: there is no spread to judge the difference by": found.se == 0,
        "there is a difference, but it is smaller than the margin": verdict == "same" and rejected,
    }
    more = least_total(sufficient, min(runs), least) if verdict == "undecided" else None
    return Compared(
        difference=found.difference, low=low, high=high, p=p, p_adjusted=p_adjusted, p_permutation=p_permutation,
        same_low=same_low, same_high=same_high, p_a_better=better, verdict=verdict, seeds=min(runs), seeds_needed=more,
        flags=few + tuple(text for text, holds in flags.items() if holds), test="welch", runs=runs,
    )  # fmt: skip

"""Which arm is better over several data sets? Wilcoxon's signed-rank test on one difference for each set.

A difference of .02 is large on one set and noise on another, so the differences of n sets are no sample of one normal
distribution: ranks are used instead of a t-test (Demšar, JMLR 7, 2006). The sets are the replicates: the answer is
about other sets of this kind, and more seeds do not make up for few sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tiebreak.text import number_of
from tiebreak.verdict.statistics import Compared, Goal, Outcome, holm, least_seeds, sign_flip_p

Values = NDArray[np.float64]


def compare_over_sets(
    samples: Sequence[tuple[Values, Values]], *, goal: Goal, margin: float, alpha: float = 0.05
) -> list[Compared]:
    """The verdict on each pair (mean score of a and of b on every data set), Holm over the pairs.

    Difference: Hodges and Lehmann's, the median of all means of two differences. Below `least_seeds` sets always
    `undecided`: the test cannot reject there.
    """
    ranks = [signed_ranks(a - b) for a, b in samples]
    p_values = [sign_flip_p(each) if len(each) else 1.0 for each in ranks]
    adjusted = holm(p_values).tolist()
    together = zip(samples, p_values, adjusted, strict=True)
    return [_compared(a, b, (p, own), len(samples), (goal, margin, alpha)) for (a, b), p, own in together]


def signed_ranks(differences: Values) -> Values:
    """Ranks of the absolute differences with their signs; ties share their mean rank, and zeros count for neither."""
    size = np.abs(differences)
    ranks = np.array([np.count_nonzero(size < own) + (np.count_nonzero(size == own) + 1) / 2 for own in size])
    return np.asarray(np.sign(differences) * ranks, dtype=np.float64)


def _compared(
    a: Values, b: Values, p_values: tuple[float, float], comparisons: int, terms: tuple[Goal, float, float]
) -> Compared:
    (goal, margin, alpha), (p, p_adjusted), n = terms, p_values, len(a)
    least, better = least_seeds(comparisons, alpha), _share_better(a, b, goal)
    averages = walsh_averages(a - b)
    middle = float(np.median(averages)) if n else None
    few = (f"{number_of(n, 'data set')}: too few for a test over sets, which needs {least}",) if n < least else ()
    if n < 2 or middle is None:
        return Compared(difference=middle, p_a_better=better, seeds=n, flags=few, test="wilcoxon")
    rejected = p_adjusted <= alpha
    low, high = interval(averages, n, alpha / comparisons)
    if rejected:
        low, high = (max(low, 0.0), high) if middle > 0 else (low, min(high, 0.0))
    same_low, same_high = interval(averages, n, 2 * alpha)
    verdict: Outcome = "undecided"
    if n >= least and -margin < same_low and same_high < margin:
        verdict = "same"
    elif n >= least and rejected and middle:
        verdict = "a" if (middle > 0) == (goal == "max") else "b"
    finite = math.isfinite(low) and math.isfinite(high)
    return Compared(
        difference=middle, low=low if finite else None, high=high if finite else None, p=p, p_adjusted=p_adjusted,
        p_a_better=better, verdict=verdict, seeds=n, flags=few, test="wilcoxon",
    )  # fmt: skip


def _share_better(a: Values, b: Values, goal: Goal) -> float | None:
    """In what share of the sets a is better than b, ties as half."""
    signs = np.sign(a - b) if goal == "max" else np.sign(b - a)
    return float((signs + 1).mean() / 2) if len(signs) else None


def walsh_averages(differences: Values) -> Values:
    """The means of every two differences, each with itself too, sorted."""
    first, second = np.triu_indices(len(differences))
    return np.sort((differences[first] + differences[second]) / 2)


def interval(averages: Values, n: int, level: float) -> tuple[float, float]:
    """The interval that belongs to the signed-rank test: all shifts that it does not reject; infinite with few sets."""
    below = _rank_sums(n).cumsum() / 2.0**n  # P(T <= t)
    cut = int(np.count_nonzero(below <= level / 2))
    if not cut:
        return -math.inf, math.inf
    return float(averages[cut - 1]), float(averages[len(averages) - cut])


def _rank_sums(n: int) -> Values:
    """In how many of the 2^n sign patterns the positive ranks sum to 0, 1, 2, …"""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] = counts[rank:] + counts[:-rank]
    return counts

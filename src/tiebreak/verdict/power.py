"""How many seeds does a question take? The power of the two tests, and the seeds that a further look needs.

Symbols as in `verdict.statistics`. Pure functions.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import nctdtr, stdtrit

from tiebreak.verdict.compared import POWER, least_total
from tiebreak.verdict.sequential import Looks


def power(difference: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """Chance that the paired t-test rejects: P(|T'| > t(1 - alpha / 2)), T' non-central with D · sqrt(n) / s."""
    if n < 2 or sd == 0:
        return float(n >= 2 and difference != 0)
    critical, shift = -quantile(n, alpha / 2), difference / sd * math.sqrt(n)
    return _noncentral(-critical, n, shift) + 1 - _noncentral(critical, n, shift)


def equivalence_power(difference: float, sd: float, n: int, margin: float, alpha: float = 0.05) -> float:
    """Chance of `same`: P(T' < -t(1 - alpha)) at D - margin less P(T' < t(1 - alpha)) at D + margin, not below 0."""
    if n < 2 or sd == 0:
        return float(n >= 2 and abs(difference) < margin)
    critical, scale = -quantile(n, alpha), math.sqrt(n) / sd
    below = _noncentral(-critical, n, (difference - margin) * scale)
    return max(0.0, below - _noncentral(critical, n, (difference + margin) * scale))


def seeds_needed(
    mean: float, sd: float, n: int, margin: float, *, level: float, alpha: float, least: int, looks: Looks | None = None
) -> int | None:
    """How many more seeds give either test an 80 % chance, if the true difference and spread are these.

    `level` is that of the test for a difference (alpha over the comparisons). With `looks`, the tests are those of one
    further look at the study, or of this one where runs are missing. None when MOST_SEEDS would not do.
    """

    def enough(total: int) -> bool:
        further = looks.after(total) if looks is not None and total > looks.seeds[-1] else looks
        if power(mean, sd, total, level if further is None else further.level(level)) >= POWER:
            return True
        if abs(mean) >= margin:  # then the chance of `same` is at most its level: a boundary need not be computed
            return False
        alike = 2 * alpha if further is None else further.level(2 * alpha)
        return equivalence_power(mean, sd, total, margin, alike / 2) >= POWER

    return least_total(enough, n, least)


@lru_cache(maxsize=100_000)
def quantile(n: int, level: float) -> float:
    """Student's t with n - 1 degrees of freedom: the same for all comparisons with as many seeds."""
    return float(stdtrit(n - 1, level))


def _noncentral(t: float, n: int, shift: float) -> float:
    found = float(nctdtr(n - 1, shift, t))
    return float(t > shift) if math.isnan(found) else found  # NaN deep in a tail: 0 or 1

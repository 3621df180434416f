"""Which of two designs is better, by how much, and how sure is that? Pure functions of numpy arrays.

Symbols: n seeds; d_i = a_i - b_i, the difference at seed i; D and s, mean and standard deviation (n - 1) of the d_i;
se = s / sqrt(n); m comparisons; t(q), the q quantile of Student's t with n - 1 degrees of freedom.
`docs/statistics.md` says why each formula was chosen and what it promises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr

from tiebreak.text import number_of
from tiebreak.verdict import unpaired
from tiebreak.verdict.compared import (
    LARGEST,
    MOST_SEEDS,
    Compared,
    Goal,
    Interval,
    Outcome,
    Scores,
    chance_a_better,
    checked,
    cut_at_zero,
)
from tiebreak.verdict.power import equivalence_power, power, quantile, seeds_needed
from tiebreak.verdict.sequential import Looks
from tiebreak.verdict.sign_flip import DRAWS, sign_flip_p, sign_flip_ps
from tiebreak.verdict.skewness import LOPSIDED, hall_interval, hall_p, is_lopsided, skewness

__all__ = [
    "ALPHA",
    "DRAWS",
    "LARGEST",
    "MOST_SEEDS",
    "Compared",
    "Estimate",
    "Goal",
    "Interval",
    "Outcome",
    "Sample",
    "chance_a_better",
    "compare",
    "equivalence_power",
    "estimate",
    "example_interval",
    "family_p",
    "holm",
    "least_seeds",
    "power",
    "prediction_interval",
    "sign_flip_p",
    "t_test_p",
    "too_few_flag",
    "usable",
]


ALPHA = 0.05  # the chance to err, for the whole life of a study


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over seeds with its Student-t interval; None where n scores are too few."""

    mean: float | None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    n: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Scores of two arms, a[i] and b[i] of the same seed, all finite. An interaction has a = a - b and b = c - d.

    Not `paired`: a and b are independent runs, any number of each.
    """

    a: ArrayLike
    b: ArrayLike
    goal: Goal = "max"
    margin: float | None = None  # instead of the call's, for a metric of another unit
    paired: bool = True


def too_few_flag(seeds: int, least: int, comparisons: int) -> str:
    """The flag of a comparison with fewer seeds than can decide it."""
    are = "is" if seeds == 1 else "are"
    return f"{number_of(seeds, 'seed')} {are} fewer than the {least} needed (comparisons: {comparisons})"


def too_few_seeds(seeds: int, comparisons: int) -> str:
    """The warning of a study with fewer seeds than can decide its comparisons; empty where there are enough."""
    least = least_seeds(comparisons)
    if seeds >= least:
        return ""
    too_few = f"{number_of(seeds, 'seed')} cannot decide {number_of(comparisons, 'comparison')}"
    return f"{too_few}: at least {least} are needed (--seeds {least})"


def usable(score: float) -> bool:
    """Whether a score can be compared: a finite number whose square does not overflow. Other runs count as failed."""
    return abs(score) <= LARGEST


def estimate(scores: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The mean over infinitely many seeds: mean ± t((1 + confidence) / 2) · sd / sqrt(n)."""
    values = checked(scores)
    if len(values) < 2:
        return Estimate(mean=float(values[0]) if len(values) else None, n=len(values))
    mean, sd = _mean_sd(values)
    low, high = _interval(values, 1 - confidence)
    return Estimate(mean=mean, sd=sd, low=low, high=high, n=len(values))


def prediction_interval(scores: ArrayLike, confidence: float = 0.95) -> Interval | None:
    """Where one fresh run falls: mean ± t((1 + confidence) / 2) · sd · sqrt(1 + 1 / n). None below two scores."""
    values = checked(scores)
    return _interval(values, 1 - confidence, fresh=1) if len(values) > 1 else None


def compare(
    samples: Sequence[Sample], *, margin: float, alpha: float = ALPHA, looks: Looks | None = None
) -> list[Compared]:
    """The verdict on each sample; `a` and `b` together err with a chance of at most `alpha`.

    In this order: `undecided` below `least_seeds`; `same` when D ± t(1 - alpha) · se lies inside ±margin; `a` or `b`
    when Holm's p is at most alpha, which is when the simultaneous interval excludes 0; else `undecided`.

    Samples that are not paired by seed are compared by Welch's test, without looks. With `looks`, alpha holds for all
    looks at the study together: each level is that of this look, and p-values are adjusted for the looks first.
    Without, this is the only look.
    """
    margins = [margin if sample.margin is None else sample.margin for sample in samples]
    if not all(0 < each < math.inf for each in (margin, *margins)):
        raise ValueError(f"margins should be positive numbers, not {margin}, {margins}")
    scores = [(checked(sample.a), checked(sample.b)) for sample in samples]
    if any(sample.paired and len(a) != len(b) for sample, (a, b) in zip(samples, scores, strict=True)):
        raise ValueError("a and b should hold one score for each of the same seeds")
    p_t, p_flip = _p_values(samples, scores)
    p_values = zip(p_t, _adjusted(p_t, looks), p_flip, _adjusted(p_flip, looks), strict=True)
    levels = Levels.of(alpha, len(samples), looks)
    return [_compared(sample, p, own, levels, looks) for sample, p, own in zip(samples, p_values, margins, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The levels of the tests of one look at `comparisons` comparisons."""

    alpha: float
    comparisons: int
    apart: float  # two-sided, of the test for a difference
    alike: float  # twice the one-sided level of the tests for `same`

    @classmethod
    def of(cls, alpha: float, comparisons: int, looks: Looks | None) -> Levels:
        """Those of this look; without looks, those of the only one."""
        apart, alike = alpha / max(1, comparisons), 2 * alpha
        if looks is not None:
            apart, alike = looks.level(apart), looks.level(alike)
        return cls(alpha=alpha, comparisons=comparisons, apart=apart, alike=alike)


def look_intervals(
    samples: Sequence[Sample], looks: Looks, alpha: float = ALPHA
) -> list[tuple[float | None, tuple[float | None, float | None]]]:
    """The difference and the simultaneous interval of each sample, as `compare` gives them at an earlier look."""
    differences = [checked(sample.a) - checked(sample.b) for sample in samples]
    p_values = [_deciding_p(each) for each in differences]
    rejected, many = set[int](), len(samples)
    for step, index in enumerate(np.argsort(p_values, kind="stable").tolist()):  # Holm's steps
        if p_values[index] > looks.level(alpha / (many - step)):
            break
        rejected.add(index)
    level = looks.level(alpha / many)
    return [
        (_mean_sd(each)[0], _simultaneous(each, level, index in rejected)) if len(each) > 1 else (None, (None, None))
        for index, each in enumerate(differences)
    ]


def family_p(samples: Sequence[Sample], looks: Looks | None) -> list[float]:
    """The p of each sample, adjusted for the looks and by Holm for the others: `compare` without intervals."""
    return _adjusted([_deciding_p(checked(each.a) - checked(each.b)) for each in samples], looks)


def _adjusted(p_values: Sequence[float], looks: Looks | None) -> list[float]:
    """Adjusted for the looks at the study, then by Holm for the number of comparisons."""
    return [float(p) for p in holm([p if looks is None else looks.adjusted(p) for p in p_values])]


def _p_values(samples: Sequence[Sample], scores: Sequence[tuple[Scores, Scores]]) -> tuple[list[float], list[float]]:
    """The p of every sample by the t-test, and by the test without the normal assumption (not for very many)."""
    p_t, p_exact = [1.0] * len(samples), [1.0] * len(samples)
    paired = [place for place, sample in enumerate(samples) if sample.paired]
    differences = [scores[place][0] - scores[place][1] for place in paired]
    for place, values, p in zip(paired, differences, sign_flip_ps(differences), strict=True):
        p_t[place], p_exact[place] = _deciding_p(values), p
    for place, (a, b) in enumerate(scores):
        if not samples[place].paired and min(len(a), len(b)) >= 2:
            p_t[place] = unpaired.welch(a, b).p
            exact = unpaired.permutation_p(a, b)
            p_exact[place] = p_t[place] if exact is None else exact
    return p_t, p_exact


def t_test_p(differences: ArrayLike) -> float:
    """Two-sided p of the paired t-test, 2 · P(T < -|D| / se). Without spread 0, or 1 if D = 0; 1 below two seeds."""
    values = np.asarray(differences, dtype=np.float64)
    mean, sd = _mean_sd(values) if len(values) > 1 else (0.0, 0.0)
    se = sd / math.sqrt(max(1, len(values)))
    return float(2 * stdtr(len(values) - 1, -abs(mean) / se)) if se else float(mean == 0)


def holm(p_values: Sequence[float] | Scores) -> Scores:
    """Holm's adjusted p: for the k-th smallest of m, the largest (m - j + 1) · p_(j) over j <= k, at most 1."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    return np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)[np.argsort(order)]


def least_seeds(comparisons: int, alpha: float = ALPHA) -> int:
    """The smallest n with 2^(1 - n) <= alpha / m: below it the sign-flip test cannot reject after Holm."""
    if comparisons < 1 or not 0 < alpha < 1:
        raise ValueError(f"should be at least 1 comparison and 0 < alpha < 1, not {comparisons} and {alpha}")
    return next(n for n in range(1, 1100) if 2.0 ** (1 - n) <= alpha / comparisons)


def example_interval(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Interval | None:
    """Would another test set agree? With e_j = mean over runs of a[:, j] - b[:, j]: mean(e) ± z · sd(e) / sqrt(J).

    a and b are influence values [runs, J examples] (`verdict.influence`): their mean over examples is the score of the
    run. The runs are held fixed: this says nothing about seeds. None below two examples.
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not len(a) or not len(b):
        raise ValueError(
            f"influence values should be [runs, examples] of the same examples, not {a.shape} and {b.shape}"
        )
    if a.shape[1] < 2:
        return None
    each = checked(a.mean(axis=0) - b.mean(axis=0))
    half = float(ndtri((1 + confidence) / 2) * each.std(ddof=1)) / math.sqrt(len(each))
    return float(each.mean()) - half, float(each.mean()) + half


def _compared(
    sample: Sample, p_values: Sequence[float], margin: float, levels: Levels, looks: Looks | None
) -> Compared:
    a, b, alpha, many = checked(sample.a), checked(sample.b), levels.alpha, levels.comparisons
    if not sample.paired:
        terms = unpaired.Terms(comparisons=many, margin=margin, alpha=alpha)
        return unpaired.compared(a, b, p_values, sample.goal, terms)
    n, least, better = len(a), least_seeds(many, alpha), chance_a_better(a, b, sample.goal)
    few = (too_few_flag(n, least, many),) if n < least else ()
    if n < 2:
        difference = float(a[0] - b[0]) if n else None
        return Compared(difference=difference, p_a_better=better, seeds=n, seeds_needed=least - n, flags=few)
    (_, p_adjusted, p_flip, p_flip_adjusted), p = p_values, t_test_p(a - b)
    mean, sd = _mean_sd(a - b)
    rejected, flipped = p_adjusted <= alpha, p_flip_adjusted <= alpha
    possible = 2.0 ** (1 - n) <= levels.apart  # for the sign-flip test; at an early look it is often not
    low, high = _simultaneous(a - b, levels.apart, rejected)
    same_low, same_high = _deciding_interval(a - b, levels.alike)
    verdict: Outcome = "undecided"
    if n >= least and -margin < same_low and same_high < margin:
        verdict = "same"
    elif n >= least and rejected:
        verdict = "a" if (mean > 0) == (sample.goal == "max") else "b"
    flags = {
        f"only the {'t-test' if rejected else 'sign-flip test'} finds a difference": rejected != flipped and possible,
        "every seed gives the same difference: there is no spread to judge it by": sd == 0,
        "there is a difference, but it is smaller than the margin": verdict == "same" and rejected,
        LOPSIDED: (lopsided := is_lopsided(a - b)),
    }
    needed = None
    if verdict == "undecided":
        apart = alpha / many
        needed = seeds_needed(mean, sd, n, margin, level=apart, alpha=alpha, least=least, looks=looks)
    return Compared(
        difference=mean, low=low, high=high, p=p, p_adjusted=p_adjusted, p_sign_flip=p_flip,
        same_low=same_low, same_high=same_high, p_a_better=better, verdict=verdict, seeds=n, seeds_needed=needed,
        flags=few + tuple(text for text, holds in flags.items() if holds),
        skewness=abs(skewness(a - b)) if lopsided else None,
    )  # fmt: skip


def _deciding_p(differences: Scores) -> float:
    """The p of the t-test; of lopsided differences, the larger of it and Hall's."""
    p = t_test_p(differences)
    return max(p, hall_p(differences)) if is_lopsided(differences) else p


def _deciding_interval(differences: Scores, level: float) -> Interval:
    """The t interval; of lopsided differences, the smallest that holds it and Hall's."""
    low, high = _interval(differences, level)
    if not is_lopsided(differences):
        return low, high
    other = hall_interval(differences, level)
    return min(low, other[0]), max(high, other[1])


def _simultaneous(differences: Scores, level: float, rejected: bool) -> Interval:
    """Bonferroni's interval, cut at 0 where only Holm's step rejects: it excludes 0 exactly when Holm's p <= alpha."""
    return cut_at_zero(_deciding_interval(differences, level), rejected)


def _interval(values: Scores, level: float, fresh: int = 0) -> Interval:
    (mean, sd), n = _mean_sd(values), len(values)
    half = -quantile(n, level / 2) * sd * math.sqrt(1 / n + fresh)
    return mean - half, mean + half


def _mean_sd(values: Scores) -> Interval:
    mean = float(values[0] + (values - values[0]).mean())  # exact when all are equal, where a plain mean may round
    return mean, math.hypot(*(values - mean).tolist()) / math.sqrt(len(values) - 1)  # hypot does not underflow

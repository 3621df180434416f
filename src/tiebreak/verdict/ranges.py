"""The values that a metric can take. Intervals are cut to them: no accuracy lies above 1, no perplexity below 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.registry import OWN_TASK
from tiebreak.text import listed, number_of, printable
from tiebreak.verdict.compared import Compared

Range = tuple[float, float]

ANYTHING: Range = (-math.inf, math.inf)
SHARE: Range = (0.0, 1.0)
CORRELATION: Range = (-1.0, 1.0)
RANGES: dict[str, Range] = {
    **dict.fromkeys(
        ("accuracy", "balanced_accuracy", "macro_f1", "calibration_error", "exact", "jaccard", "cosine", "dl"), SHARE
    ),
    **dict.fromkeys(("loss", "error", "cer", "wer"), (0.0, math.inf)),
    "perplexity": (1.0, math.inf),
}
BY_DEFINITION = ("accuracy", "balanced_accuracy", "macro_f1", "calibration_error", "exact", "jaccard", "perplexity")
ROUNDING = 1e-6  # a share of 1.0000001 is one
MOST_NAMED = 3  # arms in one warning


def range_of(metric: str, task: str = "") -> Range:
    """The range of a metric on any split (`val_…`, `train_…`); an unknown metric may take any value.

    So may that of a user's program or own task: its accuracy may be a per cent, its loss negative.
    """
    if task in (PROGRAM, OWN_TASK):
        return ANYTHING
    return RANGES.get(metric.removeprefix("train_").removeprefix("val_"), ANYTHING)


def range_of_scores(metric: str, scores: Iterable[float]) -> Range:
    """That of scores of unknown origin: any value, where one of them lies outside of the metric's range."""
    within = range_of(metric)
    return within if all(_lies(score, within) for score in scores) else ANYTHING


def outside(metric: str, scores: Iterable[tuple[str, float]], margin: float) -> str:
    """The warning of scores, with their arms, that the metric cannot have whoever computes it: per cents, mostly."""
    within = range_of(metric)
    if metric.removeprefix("train_").removeprefix("val_") not in BY_DEFINITION:
        return ""  # a loss may be negative, and so may another's "cosine" be
    found: dict[str, float] = {}  # by arm, an example
    for arm, score in scores:
        if not _lies(score, within):
            found.setdefault(arm, score)
    if not found:
        return ""
    arms, example = [printable(arm) for arm in found], next(iter(found.values()))
    named = listed(arms) if len(arms) <= MOST_NAMED else number_of(len(arms), "arm")
    share = math.isfinite(within[1])
    least = f"goes from {within[0]:g} to {within[1]:g}" if share else f"is at least {within[0]:g}"
    cure = f"; are these per cents? All scores and the margin ({margin:g}) have to be in one unit" if share else ""
    return f"{named}: {metric} {example:.6g}, but {metric} {least}{cure}"


def _lies(score: float, within: Range) -> bool:
    """Whether a score is in the range; one that is not finite is no score."""
    return not math.isfinite(score) or within[0] - ROUNDING <= score <= within[1] + ROUNDING


def of_difference(plus: Iterable[Range], minus: Iterable[Range]) -> Range:
    """The range of a sum of some numbers minus a sum of others."""
    added, taken = list(plus), list(minus)
    low = sum(low for low, _ in added) - sum(high for _, high in taken)
    return low, sum(high for _, high in added) - sum(low for low, _ in taken)


def cut(end: float | None, within: Range) -> float | None:
    """An end of an interval, moved into the range."""
    return None if end is None else min(max(end, within[0]), within[1])


def possible(result: Compared, within: Range) -> Compared:
    """A comparison whose interval is cut to the values that the difference can take."""
    return replace(result, low=cut(result.low, within), high=cut(result.high, within))

"""The values that a metric can take. Intervals are cut to them: no accuracy lies above 1, no perplexity below 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from tiebreak.study.program_keys import PROGRAM
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


def range_of(metric: str, task: str = "") -> Range:
    """The range of a metric on any split (`val_…`, `train_…`); an unknown metric may take any value.

    So may that of a user's program: its accuracy may be a per cent, its loss negative.
    """
    if task == PROGRAM:
        return ANYTHING
    return RANGES.get(metric.removeprefix("train_").removeprefix("val_"), ANYTHING)


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

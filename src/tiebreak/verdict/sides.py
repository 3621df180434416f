"""The sides of a comparison: their scores by seed, and the values that these scores can take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tiebreak.results.tally import Scores, Tally
from tiebreak.study.schema import Setting
from tiebreak.verdict import ranges
from tiebreak.verdict.influence import influence
from tiebreak.verdict.model import Side
from tiebreak.verdict.ranges import Range
from tiebreak.verdict.statistics import usable


def usable_scores(scores: Mapping[int, float]) -> Scores:
    """The scores that can be compared: a network may end with a loss that is infinite or not a number."""
    return {seed: score for seed, score in scores.items() if usable(score)}


def arm_scores(tally: Tally, arm: str, setting: Setting, metric: str) -> Scores:
    """The usable scores of an arm at a setting, by seed."""
    return usable_scores(tally.scores(arm, setting, metric))


def side_scores(tally: Tally, side: Side) -> Scores:
    """The usable scores of one side, by seed."""
    if side.metrics:
        return usable_scores(tally.agreement(side.arm, side.setting, side.metrics))
    return arm_scores(tally, side.arm, side.setting, side.metric)


def example_influence(tally: Tally, side: Side, seeds: Sequence[int]) -> NDArray[np.float64] | None:
    """The influence of each test example on the scores of these seeds [seeds, examples].

    None where a run did not keep what its score is made of (those of an older version have no weights), or where an
    example alone is infinite.
    """
    entry = tally.study.entry.metrics.get(side.metric)
    if entry is None or side.metrics or not seeds:
        return None
    values = tally.outcomes(side.arm, side.setting, entry.of or side.metric)
    weights = tally.outcomes(side.arm, side.setting, entry.weight) if entry.weight else dict.fromkeys(seeds)
    if any(seed not in values or seed not in weights for seed in seeds):
        return None
    rows = [influence(entry, values[seed], weights[seed]) for seed in seeds]
    finite = all(usable(float(np.abs(row).max(initial=0.0))) for row in rows)
    return np.stack(rows) if finite and len({len(row) for row in rows}) == 1 else None


def side_range(side: Side, task: str = "") -> Range:
    """The values that the scores of one side can take."""
    return ranges.CORRELATION if side.metrics else ranges.range_of(side.metric, task)


def paired_scores(tally: Tally, sides: Sequence[Side]) -> tuple[Scores, Scores]:
    """What is subtracted from what, by seed: two scores, two differences (an interaction), a score and 0."""
    found = [side_scores(tally, side) for side in sides]
    if len(found) == 1:
        return found[0], dict.fromkeys(found[0], 0.0)
    if len(found) == 4:
        return _difference(found[0], found[1]), _difference(found[2], found[3])
    return found[0], found[1]


def _difference(a: Scores, b: Scores) -> Scores:
    return {seed: a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())}


def paired_ranges(sides: Sequence[Side], task: str = "") -> tuple[Range, Range]:
    """The values that the two scores of `paired_scores` can take."""
    found = [side_range(side, task) for side in sides]
    if len(found) == 1:
        return found[0], (0.0, 0.0)
    if len(found) == 4:
        return ranges.of_difference(found[:1], found[1:2]), ranges.of_difference(found[2:3], found[3:])
    return found[0], found[1]

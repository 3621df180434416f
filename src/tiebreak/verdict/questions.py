"""The differences that a study tests: one for each comparison, or several, and the scores of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tiebreak.results.tally import Tally
from tiebreak.study.schema import Agreement, BestSetting, Comparison, Interaction, Order, setting_label
from tiebreak.verdict import ranges, statistics
from tiebreak.verdict.model import Side
from tiebreak.verdict.sides import paired_ranges, paired_scores


@dataclass(frozen=True)
class Question:
    """One tested difference: the first side minus the second, as `ComparisonResult` says; `a` and `b` are labels."""

    comparison: Comparison
    a: str
    b: str
    metric: str
    sides: tuple[Side, ...]

    def range(self, task: str) -> ranges.Range:
        """The values that the difference can take."""
        first, second = paired_ranges(self.sides, task)
        return ranges.of_difference([first], [second])


def all_questions(tally: Tally) -> list[Question]:
    """Every tested difference of the study, in its order."""
    return [question for item in tally.study.comparisons for question in questions(tally, item)]


def questions(tally: Tally, item: Comparison) -> Iterator[Question]:
    """The differences of one comparison: several where it asks for the best setting or an order of metrics."""
    metric = item.metric or tally.study.metric
    if isinstance(item, BestSetting):
        for setting in tally.study.settings(item.arm):
            if setting != item.expect:
                a, b = (f"{item.arm} at {setting_label(each)}" for each in (item.expect, setting))
                sides = tuple(Side(arm=item.arm, setting=each, metric=metric) for each in (item.expect, setting))
                yield Question(item, a, b, metric, sides)
        return
    if isinstance(item, Order):
        for high, low in pairwise(item.metrics):
            setting = tally.chosen(item.arm)
            sides = tuple(Side(arm=item.arm, setting=setting, metric=each) for each in (high, low))
            yield Question(item, f"{high} of {item.arm}", f"{low} of {item.arm}", high, sides)
        return
    if isinstance(item, Agreement):
        side = Side(arm=item.arm, setting=tally.chosen(item.arm), metric=item.metrics[0], metrics=item.metrics)
        yield Question(item, f"agreement of {', '.join(item.metrics)} of {item.arm}", "none", side.metric, (side,))
        return
    sides = tuple(Side(arm=arm, setting=tally.chosen(arm), metric=metric) for arm in item.arms())
    if isinstance(item, Interaction):
        yield Question(item, f"{item.a} - {item.b}", f"{item.c} - {item.d}", metric, sides)
    else:
        yield Question(item, item.a, item.b, metric, sides)


def sample(tally: Tally, question: Question) -> statistics.Sample:
    """The scores of the seeds that finished on every side."""
    first, second = paired_scores(tally, question.sides)
    seeds = sorted(first.keys() & second.keys())
    a, b = (np.array([scores[seed] for seed in seeds], dtype=np.float64) for scores in (first, second))
    goal, margin = tally.study.goal(question.metric), question.comparison.margin
    return statistics.Sample(a=a, b=b, goal=goal, margin=margin)

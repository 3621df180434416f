"""The verdict on the records that there are, and how its intervals narrowed as seeds arrived. It counts as no look.

Of a study that takes seeds until it is decided, only what was seen at its looks is shown: those intervals are right
however often one looks. Any other study is decided once, at its planned number of seeds: what is shown before is not
final.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.plan.runs import Plan
from tiebreak.results.look_history import looks_at
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study
from tiebreak.verdict import ranges, sentences
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import ComparisonResult, Verdict
from tiebreak.verdict.questions import Question, all_questions, sample
from tiebreak.verdict.statistics import ALPHA, Sample, look_intervals
from tiebreak.verdict.stopping import looks_of

MOST_COMPARISONS = 100
MOST_POINTS = 60  # of a path

Point = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """What can be said now: the verdict, in one sentence too, and the path of each comparison that is shown."""

    verdict: Verdict
    sentence: str | None
    paths: list[list[Point]]
    at_look: bool  # of a study until decided: whether it has been looked at


def verdict_so_far(study: Study, plan: Plan, records: Records, stored: Verdict | None = None) -> SoFar:
    """The verdict on complete or incomplete records; `stored` where it was made before, on these very records."""
    complete = all(identity in records.runs for identity in plan.runs)
    if study.until_decided is None:
        verdict = stored or make_verdict(study, plan, records)
        known = complete or verdict.primary.difference is not None
        paths = _paths(tally_of(study, plan, records, verdict), verdict.comparisons[:MOST_COMPARISONS])
        return SoFar(verdict=verdict, sentence=verdict.answer if known else None, paths=paths, at_look=False)
    done = sorted(look.seeds for look in looks_at(study, plan, records.looks) if complete or look.seeds < study.seeds)
    seen = study if complete else study.model_copy(update={"seeds": done[-1]}) if done else None
    verdict = stored or make_verdict(seen or study, plan, records)
    shown = verdict.comparisons[:MOST_COMPARISONS]
    if seen is None:
        return SoFar(
            verdict=verdict,
            sentence=f"No look yet: the first is at {study.seeds} seeds.",
            paths=[[] for _ in shown],
            at_look=False,
        )
    primary = [item for item in verdict.comparisons if item.primary]
    text = sentences.sentences(primary, comparisons=len(verdict.comparisons))
    sentence = verdict.answer if complete else f"{text} The next look is at {study.seeds} seeds."
    return SoFar(verdict=verdict, sentence=sentence, paths=[_looks(item) for item in shown], at_look=True)


def tally_of(study: Study, plan: Plan, records: Records, verdict: Verdict) -> Tally:
    """The records by arm, setting and seed, with the settings that the verdict has chosen: choosing takes long."""
    return Tally(study, plan, records, _chosen={arm.name: arm.setting for arm in verdict.designs})


def _looks(item: ComparisonResult) -> list[Point]:
    return [
        {"n": look.seeds, "difference": look.difference, "low": look.low, "high": look.high}
        for look in item.path
        if look.difference is not None
    ]


def _paths(tally: Tally, shown: Sequence[ComparisonResult]) -> list[list[Point]]:
    """The difference and its interval with the first n seeds of each comparison, as the verdict would give them."""
    asked = all_questions(tally)
    looks = looks_of(tally)
    samples = [sample(tally, question) for question in asked[: len(shown)]]
    paths: list[list[Point]] = [[] for _ in shown]
    if looks is None:
        return paths
    alpha = ALPHA * len(samples) / len(asked)  # the level of each is that among all comparisons
    for n in _sizes(max((np.size(each.a) for each in samples), default=0)):
        found = look_intervals([_first(each, n) for each in samples], looks, alpha)
        for path, question, each, (difference, ends) in zip(paths, asked, samples, found, strict=False):
            if np.size(each.a) >= n and difference is not None:
                path.append(_point(n, difference, ends, question, tally.study.task))
    for path, item in zip(paths, shown, strict=True):
        if path and item.seeds == path[-1]["n"]:  # the very numbers of the verdict
            path[-1] |= {"difference": item.difference, "low": item.low, "high": item.high}
    return paths


def _sizes(most: int) -> list[int]:
    """Numbers of seeds from 2 on, the last one among them, not too many."""
    step = max(1, -(-(most - 1) // MOST_POINTS))
    return sorted({*range(2, most + 1, step), most} - {0, 1})


def _first(each: Sample, n: int) -> Sample:
    a, b = np.asarray(each.a)[:n], np.asarray(each.b)[:n]
    return Sample(a=a, b=b, goal=each.goal, margin=each.margin)


def _point(n: int, difference: float, ends: tuple[float | None, float | None], question: Question, task: str) -> Point:
    within = question.range(task)
    low, high = (ranges.cut(end, within) for end in ends)
    return {"n": n, "difference": difference, "low": low, "high": high}

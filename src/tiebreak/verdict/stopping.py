"""Looks at a study as the verdict uses them, and when a study that takes seeds until it is decided stops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from tiebreak.errors import TiebreakError
from tiebreak.results.look_history import looks_at, looks_before, planned_end
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study
from tiebreak.text import number_of
from tiebreak.verdict import ranges
from tiebreak.verdict.model import ComparisonResult, Look, Stopping
from tiebreak.verdict.power import quantile
from tiebreak.verdict.questions import all_questions, sample
from tiebreak.verdict.sequential import Looks, look_sizes
from tiebreak.verdict.statistics import ALPHA, Compared, Levels, Sample, least_seeds, look_intervals

FUTILE = 0.1  # a study whose chance to be decided is smaller stops
STUDIES = 4_000  # simulated for that chance


def batch_sizes(study: Study, comparisons: int) -> tuple[int, ...]:
    """Seeds at each look of a study that takes seeds until it is decided; one line where its cap is too small."""
    least, cap = least_seeds(comparisons), study.most_seeds
    if study.until_decided is not None and study.until_decided.max_seeds < least:
        raise TiebreakError(
            f"max_seeds = {study.until_decided.max_seeds}: at least {least} seeds are needed to decide "
            f"{number_of(comparisons, 'comparison')}; give --max-seeds {least} or more"
        )
    return look_sizes(least, cap)


def looks_of(tally: Tally) -> Looks | None:
    """The looks at the study so far, this one last. None with a single seed, which nothing can be said about.

    A look counts if it could decide one comparison: more of them may have been added since.
    """
    study, least = tally.study, least_seeds(1)
    if study.seeds < 2:
        return None
    earlier = [look for look in looks_at(study, tally.plan, tally.records.looks) if look.seeds >= least]
    before = looks_before(study, tally.plan, earlier, tally.records.runs)
    seeds = (*(look.seeds for look in before), study.seeds)
    fewer = (*(min(look.pairs.values(), default=look.seeds) for look in before), study.seeds)
    return Looks(seeds, planned_end(study, earlier), fewer if fewer != seeds else ())


def further_looks(tally: Tally, looks: Looks | None) -> list[str]:
    """A warning where the study was looked at with more seeds than it has now, or with as many; else none."""
    now = tally.study.seeds
    if looks is not None and now in looks.seeds[:-1]:
        return [
            f"a verdict on {now} seeds was made here while runs had failed that were tried again since: this is a "
            f"further look, tested at {100 * looks.level(ALPHA):.2g} %"
        ]
    larger = [look.seeds for look in looks_at(tally.study, tally.plan, tally.records.looks) if look.seeds > now]
    if not larger:
        return []
    most, spent = max(larger), ""
    if looks is not None and now >= least_seeds(1) and max(looks.seeds) > now:  # fewer decide nothing: they are no look
        spent = f"; this is a further look, tested at {100 * looks.level(ALPHA):.2g} %"
    return [f"a verdict on {most} seeds was made here too{spent}; --seeds {most} rests on more"]


def earlier_looks(tally: Tally, looks: Looks | None) -> list[tuple[Look, ...]]:
    """Each tested difference of the study at the looks before this one, on the seeds and the settings of that look."""
    paths: list[list[Look]] = [[] for _ in all_questions(tally)]
    for k, seeds in enumerate(looks.seeds[:-1] if looks else ()):
        assert looks is not None
        if seeds > tally.study.seeds or seeds in looks.seeds[k + 1 :]:
            continue  # not in the plan, or its failed runs were tried again; `further_looks` names it
        then, at = looks.until(k), _first_seeds(tally, seeds)
        asked = all_questions(at)
        samples = [sample(at, question) for question in asked]
        level = Levels.of(ALPHA, len(samples), then).apart
        found = zip(paths, asked, samples, look_intervals(samples, then), strict=True)
        for path, question, each, (difference, (low, high)) in found:
            within = question.range(tally.study.task)
            ends = {"low": ranges.cut(low, within), "high": ranges.cut(high, within)}
            path.append(Look(seeds=np.size(each.a), difference=difference, level=level, **ends))
    return [tuple(path) for path in paths]


def look_now(tally: Tally, compared: Sequence[Compared], looks: Looks | None) -> list[tuple[Look, ...]]:
    """The same for this look; empty with a single seed, and while runs are missing: what is there is no look."""
    each = ((arm.name, setting) for arm in tally.study.arms for setting in tally.study.settings(arm))
    names = (name for arm, setting in each for _, name in tally.runs(arm, setting))
    if looks is None or not all(name in tally.records.runs for name in names):
        return [() for _ in compared]
    level = Levels.of(ALPHA, len(compared), looks).apart
    return [
        (Look(seeds=item.seeds, difference=item.difference, low=item.low, high=item.high, level=level),)
        for item in compared
    ]


def _first_seeds(tally: Tally, seeds: int) -> Tally:
    return Tally(tally.study.model_copy(update={"seeds": seeds}), tally.plan, tally.records)


def stopping_of(
    tally: Tally, looks: Looks | None, comparisons: Sequence[ComparisonResult], *, complete: bool
) -> Stopping | None:
    """Whether a study that takes seeds until it is decided has come to its end, and why."""
    rule = tally.study.until_decided
    if rule is None or looks is None:
        return None
    wanted = [index for index, item in enumerate(comparisons) if item.primary or rule.comparisons == "all"]
    undecided = [index for index in wanted if comparisons[index].verdict == "undecided"]
    first, last = min(looks.seeds), looks.seeds[-1]
    further = look_sizes(first, rule.max_seeds, last)[1:] if last < rule.max_seeds else ()
    chance: float | None = None
    reason: Literal["decided", "most seeds", "futile", "goes on", "not final"] = "goes on"
    if undecided and further and complete:  # before, the runs that are there are no look
        chances = [_chance(tally, comparisons, index, looks, further) for index in undecided]
        chance = min((each for each in chances if each is not None), default=None)
    if not complete:
        reason = "not final"
    elif not undecided:
        reason = "decided"
    elif not further:
        reason = "most seeds"
    elif chance is not None and chance < FUTILE:
        reason = "futile"
    following = {"goes on": further[0] if further else None, "not final": looks.seeds[-1]}.get(reason)
    done = looks.seeds if complete else looks.seeds[:-1]
    return Stopping(
        max_seeds=rule.max_seeds,
        comparisons=rule.comparisons,
        looks=done,
        next=following,
        reason=reason,
        chance=chance,
    )


def _chance(
    tally: Tally, comparisons: Sequence[ComparisonResult], index: int, looks: Looks, further: Sequence[int]
) -> float | None:
    """The chance of one comparison; 0 where every run of a side diverged or failed, None with fewer than two seeds."""
    item = comparisons[index]
    if item.difference is None and item.seeds_needed is None:
        return 0.0
    scores = sample(tally, all_questions(tally)[index])
    return chance_to_decide(scores, item.margin, looks, further, len(comparisons)) if np.size(scores.a) > 1 else None


def chance_to_decide(scores: Sample, margin: float, looks: Looks, further: Sequence[int], comparisons: int) -> float:
    """The chance that one of the further looks decides, given the differences so far: a predictive probability.

    The true difference and spread are drawn from what the seeds so far say of them (a flat prior), then the seeds to
    come from those; 4,000 times, from a fixed stream. 1 without spread: it is decided once there are enough seeds.
    """
    differences = np.asarray(scores.a, dtype=np.float64) - np.asarray(scores.b, dtype=np.float64)
    n = len(differences)
    if (spread := float(differences.std(ddof=1))) == 0:
        return 1.0
    stream = np.random.default_rng(0)
    sd = spread * np.sqrt((n - 1) / stream.chisquare(n - 1, STUDIES))
    truth = float(differences.mean()) + sd * stream.standard_normal(STUDIES) / math.sqrt(n)
    mean, squares = np.full(STUDIES, differences.mean()), np.full(STUDIES, spread**2 * (n - 1))
    decided = np.zeros(STUDIES, dtype=bool)
    for seeds in further:
        new = seeds - looks.seeds[-1]
        looks = looks.after(seeds)
        block = truth + sd * stream.standard_normal(STUDIES) / math.sqrt(new)
        inside = sd**2 * stream.chisquare(new - 1, STUDIES) if new > 1 else 0.0
        squares = squares + inside + (block - mean) ** 2 * n * new / (n + new)
        mean, n = (n * mean + new * block) / (n + new), n + new
        error = np.sqrt(squares / (n - 1) / n)
        apart, alike = looks.level(ALPHA / comparisons), looks.level(2 * ALPHA)
        decided |= np.abs(mean) > -quantile(n, apart / 2) * error
        decided |= np.abs(mean) - quantile(n, alike / 2) * error < margin
    return float(decided.mean())

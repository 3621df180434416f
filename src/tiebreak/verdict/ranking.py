"""More than two arms: in which order, which cannot be told apart (compact letters), and who beats whom.

All pairs of arms are tested beside the study's own comparisons, with Holm over the pairs and the level of this look.
Arms that share a letter were not found different.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiebreak.results.tally import Tally
from tiebreak.text import number_of
from tiebreak.verdict.model import RankedArm
from tiebreak.verdict.sequential import Looks
from tiebreak.verdict.sides import arm_scores
from tiebreak.verdict.statistics import ALPHA, Goal, Sample, chance_a_better, family_p, least_seeds

MOST_ARMS = 26  # that are ranked: one letter each at worst


def ranking(tally: Tally, looks: Looks | None) -> tuple[RankedArm, ...]:
    """The arms of a study that can be compared, each at its chosen setting."""
    study = tally.study
    scores = {arm.name: arm_scores(tally, arm.name, tally.chosen(arm.name), study.metric) for arm in study.arms}
    return rank(scores, study.goal(), looks)


def rank(scores: Mapping[str, Mapping[Any, float]], goal: Goal, looks: Looks | None = None) -> tuple[RankedArm, ...]:
    """The arms that have scores, by arm and seed, best first; empty for fewer than three or very many."""
    if not 3 <= len(scores) <= MOST_ARMS:
        return ()
    names = [name for name in scores if scores[name]]
    means = {name: float(np.mean(list(scores[name].values()))) for name in names}
    names.sort(key=lambda name: -means[name] if goal == "max" else means[name])
    pairs = list(itertools.combinations(names, 2))
    least, samples = least_seeds(max(1, len(pairs))), []
    for a, b in pairs:
        seeds = [seed for seed in scores[a] if seed in scores[b]]
        samples.append(Sample(a=[scores[a][seed] for seed in seeds], b=[scores[b][seed] for seed in seeds], goal=goal))
    found = family_p(samples, looks)
    apart = {
        pair for pair, p, each in zip(pairs, found, samples, strict=True) if p <= ALPHA and np.size(each.a) >= least
    }
    letters = compact_letters(names, apart)
    return tuple(
        RankedArm(
            name=name,
            mean=means[name],
            letters=letters[name],
            beats={
                other: chance_a_better(list(scores[name].values()), list(scores[other].values()), goal) or 0.0
                for other in names
                if other != name
            },
        )
        for name in names
    )


def too_few_to_rank(seeds: int, arms: int) -> str:
    """That so few seeds tell no two arms apart, whatever the scores: all pairs are tested. Empty where they can."""
    pairs = arms * (arms - 1) // 2
    least = least_seeds(max(1, pairs))
    return "" if seeds >= least else f"{number_of(seeds, 'seed')} cannot tell {arms} arms apart, which takes {least}"


def ranking_line(arms: Sequence[RankedArm], seeds: int) -> str:
    """The order in one line, with the letters where so many seeds can tell arms apart."""
    too_few = too_few_to_rank(seeds, len(arms))
    ranks = "; ".join(arm.name if too_few else f"{arm.name} {arm.letters}" for arm in arms)
    rule = too_few or "arms that share a letter cannot be told apart, all pairs taken together"
    return f"ranking, best mean first ({rule}): {ranks}"


def compact_letters(names: Sequence[str], apart: set[tuple[str, str]]) -> dict[str, str]:
    """Letters such that two names share one exactly when they are not `apart` (Piepho's insert and absorb, 2004).

    >>> compact_letters(["x", "y", "z"], {("x", "z")})
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    groups = [set(names)]
    for a, b in sorted(apart):
        split = [part for group in groups if {a, b} <= group for part in (group - {a}, group - {b})]
        groups = [group for group in groups if not {a, b} <= group] + split
        groups = [one for k, one in enumerate(groups) if not any(
            one < other or (one == other and j < k) for j, other in enumerate(groups)
        )]  # fmt: skip
    order = {name: place for place, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(order[name] for name in group))
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    marks = [letters[k] if k < len(letters) else f"({k})" for k in range(len(groups))]
    return {name: "".join(mark for mark, group in zip(marks, groups, strict=True) if name in group) for name in names}

"""Scores that you already have, from tables of numbers to verdicts: the engine of `tiebreak compare`. No torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError, nearest
from tiebreak.text import listed, number_of
from tiebreak.verdict.over_sets import compare_over_sets
from tiebreak.verdict.statistics import Compared, Goal, Sample, compare

Seed = int | str
Scores = Mapping[str, Mapping[Seed, float]]
Pairs = Sequence[tuple[str, str]]
Pairing = Literal["auto", "paired", "unpaired"]

MOST_ARMS = 50  # whose pairs are compared unasked: 1,225
SHOWN_SEEDS = 5


def compare_scores(
    scores: Scores, *, goal: Goal = "max", margin: float, pairs: Pairs | None = None, pairing: Pairing = "auto"
) -> list[tuple[str, str, Compared]]:
    """The verdict on each pair of arms: all, in order of appearance, unless `pairs` names some. Holm counts these.

    `pairing` by seed, "auto": paired where both arms have the same seeds, Welch's test where they share none, refused
    where they share some. "paired": the seeds that both have; a flag says how many are left out. "unpaired": all runs.
    """
    found = compare_each_set({"": scores}, goal=goal, margin=margin, pairs=pairs, pairing=pairing)
    return [(a, b, result) for _, a, b, result in found]


def compare_each_set(
    sets: Mapping[str, Scores], *, goal: Goal, margin: float, pairs: Pairs | None = None, pairing: Pairing = "auto"
) -> list[tuple[str, str, str, Compared]]:
    """The same on each of several data sets, for (set, a, b): Holm counts the pairs of all sets."""
    chosen = _checked_pairs(common_arms(sets), margin, pairs)
    cases, samples, flags = [], [], []
    for name, (a, b) in itertools.product(sets, chosen):
        scores = sets[name]
        paired = _is_paired(scores, a, b, pairing, f" on {name!r}" if name else "")
        seeds = [seed for seed in scores[a] if seed in scores[b]]
        sides = [_column(scores[arm], seeds if paired else scores[arm]) for arm in (a, b)]
        samples.append(Sample(a=sides[0], b=sides[1], goal=goal, paired=paired))
        flags.append(_left_out(scores, a, b) if paired else ())
        cases.append((name, a, b))
    together = zip(cases, compare(samples, margin=margin), flags, strict=True)
    return [(*case, replace(result, flags=result.flags + more)) for case, result, more in together]


def compare_sets(
    sets: Mapping[str, Scores], *, goal: Goal = "max", margin: float, pairs: Pairs | None = None
) -> list[tuple[str, str, Compared]]:
    """The verdict on each pair of arms over data sets: by Wilcoxon's test on the means of both arms on every set."""
    arms = common_arms(sets)
    chosen = _checked_pairs(arms, margin, pairs)
    means = {arm: np.array([np.mean(list(scores[arm].values())) for scores in sets.values()]) for arm in arms}
    found = compare_over_sets([(means[a], means[b]) for a, b in chosen], goal=goal, margin=margin)
    return [(a, b, result) for (a, b), result in zip(chosen, found, strict=True)]


def common_arms(sets: Mapping[str, Scores]) -> dict[str, Mapping[Seed, float]]:
    """The arms of the first data set, all of which must be in the others."""
    first = next(iter(sets.values()))
    every = dict.fromkeys(arm for scores in sets.values() for arm in scores)
    for name, scores in sets.items():
        missing = [arm for arm in every if arm not in scores]
        if missing:
            raise TiebreakError(
                f"data set {name!r} has no score of {listed(missing)}; add it, or remove the arm or the set"
            )
    return dict(first)


def choose_pairs(
    arms: Iterable[str], *, baseline: str | None = None, pairs: str | None = None, all_pairs: bool = False
) -> list[tuple[str, str]]:
    """The pairs to compare: every arm with `baseline`, those of `pairs` ("a:b,c:d"), or all (many arms: if asked)."""
    names = list(dict.fromkeys(arms))
    options = {"--baseline": baseline is not None, "--pairs": pairs is not None, "--all-pairs": all_pairs}
    if sum(options.values()) > 1:
        raise TiebreakError(f"{listed([name for name, given in options.items() if given])}: give one of them")
    if baseline is not None:
        _require(names, baseline, f"--baseline {baseline}")
        return [(arm, baseline) for arm in names if arm != baseline]
    if pairs is not None:
        return _named_pairs(names, pairs)
    many = len(names) * (len(names) - 1) // 2
    if len(names) > MOST_ARMS and not all_pairs:
        raise TiebreakError(
            f"{len(names)} arms make {many:,} pairs, and each needs more seeds to be decided beside the others; "
            "give --baseline ARM to compare every arm with one, --pairs a:b,c:d, or --all-pairs"
        )
    return list(itertools.combinations(names, 2))


def _named_pairs(names: Sequence[str], text: str) -> list[tuple[str, str]]:
    """Pairs as written: a:b,c:d. Names may hold colons and commas themselves, where only one reading fits the arms."""
    found = []
    for part in _parts(text, set(names)):
        readings = [
            (part[:place].strip(), part[place + 1 :].strip()) for place, letter in enumerate(part) if letter == ":"
        ]
        known = [(a, b) for a, b in readings if a in names and b in names]
        if not readings:
            raise TiebreakError(f"--pairs {part}: write two arms as a:b, pairs separated by commas")
        if len(known) != 1:
            for arm in readings[0]:
                _require(names, arm, f"--pairs {part}")
            raise TiebreakError(f"--pairs {part}: can be read in {len(known)} ways; rename the arms without colons")
        if known[0] in found or known[0][::-1] in found:
            raise TiebreakError(f"--pairs {part}: named twice; remove one")
        if known[0][0] == known[0][1]:
            raise TiebreakError(f"--pairs {part}: an arm cannot be compared with itself")
        found.append(known[0])
    return found


def _parts(text: str, names: set[str]) -> list[str]:
    if not any("," in name for name in names):
        return [part.strip() for part in text.split(",")]
    pieces, found = text.split(","), []
    while pieces:  # the longest run of pieces that is a pair of arms
        for count in range(len(pieces), 0, -1):
            part = ",".join(pieces[:count]).strip()
            ends = [place for place, letter in enumerate(part) if letter == ":"]
            if count == 1 or any({part[:place].strip(), part[place + 1 :].strip()} <= names for place in ends):
                found.append(part)
                del pieces[:count]
                break
    return found


def _require(names: Sequence[str], arm: str, where: str) -> None:
    if arm not in names:
        raise TiebreakError(f"{where}: no arm {arm!r} among the scores; {nearest(arm, names)}")


def _checked_pairs(scores: Scores, margin: float, pairs: Pairs | None) -> list[tuple[str, str]]:
    if not 0 < margin < math.inf:
        raise TiebreakError(f"margin: should be a positive number in the unit of the scores, not {margin}")
    chosen = list(itertools.combinations(scores, 2)) if pairs is None else list(pairs)
    for a, b in chosen:
        for name in (a, b):
            if name not in scores:
                raise TiebreakError(f"no arm {name!r} among the scores; {nearest(name, scores)}")
        if a == b:
            raise TiebreakError(f"arms {a!r} and {b!r}: an arm cannot be compared with itself")
    return chosen


def _is_paired(scores: Scores, a: str, b: str, pairing: Pairing, where: str) -> bool:
    """Whether two arms are compared seed by seed; seeds of which they share only some are refused unless asked for."""
    first, second = scores[a].keys(), scores[b].keys()
    if pairing == "unpaired" or (pairing == "auto" and first.isdisjoint(second)):
        return False
    if pairing == "paired" and first.isdisjoint(second):
        raise TiebreakError(
            f"arms {a!r} and {b!r}{where}: they share no seed, so runs cannot be paired; give --pairing unpaired"
        )
    if pairing == "auto" and first != second:
        lacking = [
            f"{arm!r} has no seed {_some([seed for seed in there if seed not in own])}"
            for arm, own, there in ((a, first, second), (b, second, first))
            if there - own
        ]
        raise TiebreakError(
            f"arms {a!r} and {b!r} have unequal seeds{where}: {'; '.join(lacking)}. Add the runs, or give "
            "--pairing paired (only the seeds of both) or --pairing unpaired (all runs, Welch's test)"
        )
    return True


def _some(seeds: Sequence[Seed]) -> str:
    left = len(seeds) - SHOWN_SEEDS
    return ", ".join(map(str, seeds[:SHOWN_SEEDS])) + (f" and {left:,} more" if left > 0 else "")


def _column(scores: Mapping[Seed, float], seeds: Iterable[Seed]) -> NDArray[np.float64]:
    return np.array([scores[seed] for seed in seeds], dtype=np.float64)


def _left_out(scores: Scores, a: str, b: str) -> tuple[str, ...]:
    alone = {name: len(scores[name].keys() - scores[other].keys()) for name, other in ((a, b), (b, a))}
    parts = [f"{number_of(count, 'run')} of {name}" for name, count in alone.items() if count]
    return (f"seeds without a partner, left out: {', '.join(parts)}",) if parts else ()

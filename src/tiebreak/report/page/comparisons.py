"""The comparisons of a verdict as rows of text, those of one question about settings under one heading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from tiebreak.report import formatting
from tiebreak.study import registry
from tiebreak.study.registry import Goal
from tiebreak.study.schema import setting_label
from tiebreak.text import number_of
from tiebreak.verdict import sentences, statistics
from tiebreak.verdict.model import ComparisonResult, Verdict
from tiebreak.verdict.sentences import Number

if TYPE_CHECKING:
    from tiebreak.report.evidence import Sides

NONE = "–"  # there is no such number: a chance of beating in an interaction, an interval over unlike test examples


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One comparison, as text."""

    name: str
    heading: str  # above this row: the question about settings that it and the next rows belong to
    label: str  # the name below such a heading
    grouped: bool
    primary: bool
    outcome: str
    decided: bool
    metric: str  # where it is not the study's
    difference: str
    interval: str
    examples: str
    crossed: str  # over seeds and examples together
    p: str
    p_adjusted: str
    p_sign_flip: str
    p_a_better: str
    seeds: str
    needed: str


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """One seed of a comparison."""

    seed: str
    a: str
    b: str
    difference: str


@dataclass(frozen=True, kw_only=True)
class LookRow:
    """A comparison as it stood at one look."""

    seeds: str
    difference: str
    interval: str
    level: str


def comparison_rows(verdict: Verdict) -> list[ComparisonRow]:
    """The table of comparisons, in the order of the study."""
    many = Counter(item.group for item in verdict.comparisons if item.kind == "setting")
    rows: list[ComparisonRow] = []
    above = ""
    for item in verdict.comparisons:
        grouped = many[item.group] > 1
        heading = f"{item.group}: {item.a} against each other setting" if grouped and item.group != above else ""
        above = item.group
        row = _comparison_row(item, heading, grouped, verdict.metric.name)
        least = statistics.least_seeds(len(verdict.comparisons))
        rows.append(replace(row, needed=formatting.seeds_needed(item, least)))
    return rows


def _comparison_row(item: ComparisonResult, heading: str, grouped: bool, metric: str) -> ComparisonRow:
    names = item.side_names
    if grouped:  # the heading names the arm
        names = setting_label(item.sides[0].setting), setting_label(item.sides[1].setting)
    none = item.examples_low is None and item.difference is not None
    return ComparisonRow(
        name=item.name,
        heading=heading,
        label=f"against {names[1]}" if grouped else item.name,
        grouped=grouped,
        primary=item.primary,
        outcome=formatting.outcome(item, names),
        decided=item.verdict != "undecided",
        metric=registry.metric_label(item.metric) if item.metric != metric else "",
        difference=formatting.signed(item.difference),
        interval=formatting.open_interval(item.low, item.high),
        examples=NONE if none else formatting.signed_interval(item.examples_low, item.examples_high),
        crossed=NONE if item.crossed_low is None else formatting.signed_interval(item.crossed_low, item.crossed_high),
        p=formatting.p_value(item.p),
        p_adjusted=formatting.p_value(item.p_adjusted),
        p_sign_flip=formatting.p_value(item.p_sign_flip),
        p_a_better=NONE if item.kind == "interaction" else formatting.chance(item.p_a_better),
        seeds=str(item.seeds),
        needed="",
    )


def answer(verdict: Verdict, number: Number = formatting.signed) -> str:
    """The verdict's answer with as many decimals as the tables."""
    complete = verdict.finished == verdict.planned
    return sentences.answer(
        verdict.comparisons, seeds=verdict.seeds, complete=complete, stopping=verdict.stopping, number=number
    )


def question_answers(verdict: Verdict, number: Number = formatting.signed) -> list[tuple[str, str]]:
    """Each question of the study with its answer, with as many decimals as the tables."""
    many = len(verdict.comparisons)
    return [
        (group, sentences.sentences(list(items), comparisons=many, number=number))
        for group, items in groupby(verdict.comparisons, key=lambda item: item.group or item.name)
    ]


def look_rows(item: ComparisonResult) -> list[LookRow]:
    """A comparison look by look."""
    return [
        LookRow(
            seeds=str(look.seeds),
            difference=formatting.signed(look.difference),
            interval=formatting.open_interval(look.low, look.high),
            level=f"{100 * look.level:.2g} %",
        )
        for look in item.path
    ]


def seed_rows(sides: Sides, seeds: int) -> list[SeedRow]:
    """A comparison seed by seed; a score that does not exist is missing."""
    if not any(sides.scores):
        return []
    rows = []
    for seed in range(seeds):
        a, b = (scores.get(seed) for scores in sides.scores)
        difference = a - b if a is not None and b is not None else None
        rows.append(
            SeedRow(
                seed=str(seed),
                a=sides.format_score(a),
                b=sides.format_score(b),
                difference=formatting.signed(difference),
            )
        )
    return rows


def ahead(item: ComparisonResult, pairs: Mapping[int, Sequence[float]], goal: Goal = "max") -> str:
    """In how many seeds the first side is better than the second, in words."""
    better = sum(a > b if goal == "max" else a < b for a, b in pairs.values())
    seeds = f"in {better} of {number_of(len(pairs), 'seed')}"
    a, b = item.side_names
    if item.kind == "interaction":
        larger = "larger" if goal == "max" else "less (a larger advantage)"
        return f"{a} was {larger} than {b} {seeds}"
    return f"{a} scored {'higher' if goal == 'max' else 'lower, which is better,'} {seeds}"

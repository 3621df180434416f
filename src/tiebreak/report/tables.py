"""The tables of a report as rows of text: nothing is computed here that the verdict or the records do not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiebreak.report import words
from tiebreak.results.verdict import ArmResult, ComparisonResult, ReportedResult, Verdict
from tiebreak.study import Reported, setting_label

if TYPE_CHECKING:
    from tiebreak.report.evidence import Evidence, Sides


@dataclass(frozen=True, kw_only=True)
class ArmRow:
    """One arm at its chosen setting."""

    name: str
    index: int
    design: str
    setting: str
    mean: str
    interval: str
    runs: str  # "9 of 10"
    failed: str
    parameters: str
    flops: str
    seconds: str


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One comparison, in numbers and in words."""

    name: str
    primary: bool
    outcome: str
    decided: bool
    metric: str
    difference: str
    interval: str
    examples: str
    p: str
    p_adjusted: str
    p_sign_flip: str
    p_a_better: str
    seeds: str
    needed: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """Validation score of one arm at one setting."""

    arm: str
    index: int
    setting: str
    chosen: bool
    mean: float | None
    shown: str
    runs: str
    scores: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """One seed of a comparison."""

    seed: str
    a: str
    b: str
    difference: str


@dataclass(frozen=True, kw_only=True)
class ReportedRow:
    """A published figure against our runs."""

    source: str
    what: str
    index: int  # of the arm that the figure is about
    metric: str
    value: float
    mean: float | None
    low: float | None
    high: float | None
    inside: bool | None
    shown: str
    ours: str
    interval: str
    seeds: str
    words: str


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """A claim and what became of it."""

    id: str
    text: str
    source: str
    words: str
    why: str


def arm_rows(verdict: Verdict) -> list[ArmRow]:
    """The table of arms, in the order of the study."""
    planned = planned_seeds(verdict)
    return [_arm_row(index, item, planned) for index, item in enumerate(verdict.designs)]


def planned_seeds(verdict: Verdict) -> int:
    """The seeds of the study, the same for every arm. An arm whose runs wait for their test counts fewer itself."""
    return max((arm.seeds + arm.failed + arm.missing for arm in verdict.designs), default=0)


def _arm_row(index: int, item: ArmResult, planned: int) -> ArmRow:
    return ArmRow(
        name=item.name,
        index=index,
        design=item.design,
        setting=setting_label(item.setting),
        mean=words.score(item.mean),
        interval=words.interval(item.low, item.high),
        runs=f"{item.seeds} of {planned}",
        failed=str(item.failed) if item.failed else "none",
        parameters=words.count(item.parameters),
        flops=words.work(item.flops),
        seconds=words.duration(item.train_seconds),
    )


def comparison_rows(verdict: Verdict) -> list[ComparisonRow]:
    """The table of comparisons."""
    return [_comparison_row(item) for item in verdict.comparisons]


def _comparison_row(item: ComparisonResult) -> ComparisonRow:
    return ComparisonRow(
        name=item.name,
        primary=item.primary,
        outcome=words.outcome(item),
        decided=item.verdict != "undecided",
        metric=item.metric,
        difference=words.signed(item.difference),
        interval=words.signed_interval(item.low, item.high),
        examples=words.signed_interval(item.examples_low, item.examples_high),
        p=words.p_value(item.p),
        p_adjusted=words.p_value(item.p_adjusted),
        p_sign_flip=words.p_value(item.p_sign_flip),
        p_a_better=words.chance(item.p_a_better),
        seeds=str(item.seeds),
        needed=words.seeds_needed(item),
        sentence=item.sentence,
    )


def setting_rows(evidence: Evidence) -> list[SettingRow]:
    """Validation score of every arm at every setting of the grid, grouped by setting."""
    from tiebreak import stats

    rows = []
    for setting in evidence.study.settings():
        for index, arm in enumerate(evidence.study.arms):
            result, scores = (
                evidence.result(arm.name),
                evidence.scores(arm.name, setting, f"val_{evidence.study.metric}"),
            )
            mean = stats.estimate(list(scores.values())).mean
            rows.append(
                SettingRow(
                    arm=arm.name,
                    index=index,
                    setting=setting_label(setting),
                    chosen=result is not None and mean is not None and dict(result.setting) == setting,
                    mean=mean,
                    shown=words.score(mean),
                    runs=f"{len(scores)} of {evidence.study.seeds}",
                    scores=tuple(scores.values()),
                )
            )
    return rows


def seed_rows(sides: Sides, seeds: int) -> list[SeedRow]:
    """A comparison seed by seed; a score that does not exist is missing."""
    if not any(sides.scores):
        return []
    rows = []
    for seed in range(seeds):
        a, b = (scores.get(seed) for scores in sides.scores)
        difference = a - b if a is not None and b is not None else None
        rows.append(SeedRow(seed=str(seed), a=words.score(a), b=words.score(b), difference=words.signed(difference)))
    return rows


def reported_rows(evidence: Evidence) -> list[ReportedRow]:
    """Published figures against our distribution of single runs."""
    asked = {(item.source, item.what): item for item in evidence.study.reported}
    return [_reported_row(evidence, item, asked.get((item.source, item.what))) for item in evidence.verdict.reported]


def _reported_row(evidence: Evidence, item: ReportedResult, asked: Reported | None) -> ReportedRow:
    return ReportedRow(
        source=item.source,
        what=item.what,
        index=(evidence.index(asked.arm) if asked else None) or 0,
        metric=asked.metric if asked else evidence.verdict.metric.name,
        value=item.value,
        mean=item.mean,
        low=item.low,
        high=item.high,
        inside=item.inside,
        shown=words.score(item.value),
        ours=words.score(item.mean),
        interval=words.interval(item.low, item.high),
        seeds=str(item.seeds),
        words={True: "inside", False: "outside", None: "too few runs"}[item.inside],
    )


def claim_rows(verdict: Verdict) -> list[ClaimRow]:
    """The claims that the study is about."""
    return [
        ClaimRow(id=item.id, text=item.text, source=", ".join(item.source), words=words.claim(item), why=item.why)
        for item in verdict.claims
    ]

"""From records to the verdict: arms at the setting that validation chose, paired by seed, compared by stats.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from tiebreak.plan.runs import Plan
from tiebreak.results.record import Records
from tiebreak.results.tally import Scores, Tally
from tiebreak.study.schema import (
    Agreement,
    BestSetting,
    Claim,
    Comparison,
    Interaction,
    Order,
    Reported,
    Setting,
    Study,
    setting_label,
)
from tiebreak.verdict import ranges, statistics
from tiebreak.verdict.model import ArmResult, ClaimResult, ComparisonResult, Metric, ReportedResult, Verdict
from tiebreak.verdict.sentences import answer, sentence


@dataclass(frozen=True)
class Side:
    """One side of a difference: a metric of an arm at a setting, or how far several metrics agree."""

    arm: str
    setting: Setting
    metric: str
    agreement: tuple[str, ...] = ()

    def scores(self, tally: Tally) -> Scores:
        """By seed."""
        if self.agreement:
            return tally.agreement(self.arm, self.setting, self.agreement)
        return _scores(tally, self.arm, self.setting, self.metric)

    @property
    def range(self) -> ranges.Range:
        """What its scores can be."""
        return ranges.CORRELATION if self.agreement else ranges.range_of(self.metric)


@dataclass(frozen=True)
class Question:
    """One tested difference: `left` minus `right`, or for an interaction (left - right) minus (left2 - right2).

    A question with one side asks how that differs from 0.
    """

    comparison: Comparison
    a: str
    b: str
    metric: str
    sides: tuple[Side, ...]

    @property
    def range(self) -> ranges.Range:
        """What the difference can be."""
        signs = (1, -1, -1, 1)[: len(self.sides)]
        plus, minus = ([each.range for each, own in zip(self.sides, signs, strict=True) if own == s] for s in (1, -1))
        return ranges.of_difference(plus, minus)


def make_verdict(study: Study, plan: Plan, records: Records) -> Verdict:
    """The answer that the records give, complete or not."""
    tally = Tally(study, plan, records)
    questions = [question for item in study.comparisons for question in _questions(tally, item)]
    samples = [_sample(tally, question) for question in questions]
    compared = statistics.compare(samples, margin=study.margin)
    comparisons = tuple(
        _comparison(tally, question, _possible(result, question.range), statistics.least_seeds(len(questions)))
        for question, result in zip(questions, compared, strict=True)
    )
    designs = tuple(_arm(tally, arm.name) for arm in study.arms)
    finished = sum(identity in records.runs for identity in plan.runs)
    told = study.seeds < statistics.least_seeds(len(samples))  # the plan's warning says it once for all comparisons
    flags = [
        f"{item.name}: {flag}"
        for item, result in zip(comparisons, compared, strict=True)
        for flag in (result.flags[1:] if told else result.flags)  # too few seeds is the first flag
    ]
    return Verdict(
        study=study.name,
        question=study.question,
        answer=answer(study, comparisons, complete=finished == len(plan.runs)),
        data=study.data,
        protocol=study.protocol,
        metric=Metric(name=study.metric, goal=study.goal()),
        margin=study.margin,
        planned=len(plan.runs),
        finished=finished,
        designs=designs,
        comparisons=comparisons,
        reported=tuple(_reported(tally, item) for item in _figures(study)),
        claims=tuple(_claim(study, claim, comparisons) for claim in study.claims),
        warnings=(*plan.warnings, *_failures(designs), *flags),
    )


def _questions(tally: Tally, item: Comparison) -> Iterator[Question]:
    metric = item.metric or tally.study.metric
    if isinstance(item, BestSetting):
        for setting in tally.study.settings():
            if setting != item.expect:
                names = [f"{item.arm} at {setting_label(each)}" for each in (item.expect, setting)]
                sides = tuple(Side(item.arm, each, metric) for each in (item.expect, setting))
                yield Question(item, names[0], names[1], metric, sides)
        return
    if isinstance(item, Order):
        for high, low in pairwise(item.metrics):
            sides = tuple(Side(item.arm, tally.chosen(item.arm), each) for each in (high, low))
            yield Question(item, f"{high} of {item.arm}", f"{low} of {item.arm}", high, sides)
        return
    if isinstance(item, Agreement):
        side = Side(item.arm, tally.chosen(item.arm), item.metrics[0], agreement=item.metrics)
        yield Question(item, f"agreement of {', '.join(item.metrics)} of {item.arm}", "none", side.metric, (side,))
        return
    sides = tuple(Side(arm, tally.chosen(arm), metric) for arm in item.arms())
    if isinstance(item, Interaction):
        yield Question(item, f"{item.a} - {item.b}", f"{item.c} - {item.d}", metric, sides)
    else:
        yield Question(item, item.a, item.b, metric, sides)


def _scores(tally: Tally, arm: str, setting: Setting, metric: str) -> Scores:
    """The scores that can be compared: a network may end with a loss that is infinite or not a number."""
    found = tally.scores(arm, setting, metric)
    return {seed: score for seed, score in found.items() if abs(score) <= statistics.LARGEST}


def _sample(tally: Tally, question: Question) -> statistics.Sample:
    """The scores of the seeds that finished on every side."""
    scores = [side.scores(tally) for side in question.sides]
    seeds = sorted(set.intersection(*(set(each) for each in scores)))
    columns = [np.array([each[seed] for seed in seeds]) for each in scores]
    if len(columns) == 1:
        columns.append(np.zeros_like(columns[0]))
    if len(columns) == 4:
        columns = [columns[0] - columns[1], columns[2] - columns[3]]
    goal, margin = tally.study.goal(question.metric), question.comparison.margin
    return statistics.Sample(a=columns[0], b=columns[1], goal=goal, margin=margin)


def _possible(result: statistics.Compared, within: ranges.Range) -> statistics.Compared:
    return replace(result, low=ranges.cut(result.low, within), high=ranges.cut(result.high, within))


def _comparison(tally: Tally, question: Question, result: statistics.Compared, least: int) -> ComparisonResult:
    low, high = _examples(tally, question) or (None, None)
    margin = question.comparison.margin or tally.study.margin
    kind: Literal["pair", "interaction", "setting", "order", "agreement"] = question.comparison.kind
    single = kind not in ("setting", "order") or len(list(_questions(tally, question.comparison))) == 1
    return ComparisonResult(
        name=question.comparison.name if single else f"{question.comparison.name}: {question.a} vs {question.b}",
        group=question.comparison.name,
        kind=kind,
        primary=question.comparison.primary,
        a=question.a,
        b=question.b,
        metric=question.metric,
        margin=margin,
        difference=result.difference,
        low=result.low,
        high=result.high,
        p=result.p,
        p_adjusted=result.p_adjusted,
        p_sign_flip=result.p_sign_flip,
        p_a_better=result.p_a_better,
        verdict=result.verdict,
        seeds=result.seeds,
        seeds_needed=result.seeds_needed,
        examples_low=low,
        examples_high=high,
        sentence=sentence(question.comparison, question.a, question.b, question.metric, result, margin, least=least),
    )


def _examples(tally: Tally, question: Question) -> tuple[float, float] | None:
    """The interval over test examples: would another test set agree?"""
    if len(question.sides) == 1:
        return None
    found = [tally.outcomes(side.arm, side.setting, side.metric) for side in question.sides]
    usable = [side.scores(tally) for side in question.sides]
    seeds = sorted(set.intersection(*(set(each) for each in found), *(set(each) for each in usable)))
    if not seeds or len({len(each[seed]) for each in found for seed in seeds}) != 1:
        return None
    stacks = [np.stack([each[seed] for seed in seeds]).astype(np.float64) for each in found]
    if len(stacks) == 4:
        stacks = [stacks[0] - stacks[1], stacks[2] - stacks[3]]
    return statistics.example_interval(stacks[0], stacks[1])


def _arm(tally: Tally, name: str) -> ArmResult:
    setting, planned = tally.chosen(name), tally.plan.arm(name)
    scores = _scores(tally, name, setting, tally.study.metric)
    endless = len(tally.scores(name, setting, tally.study.metric)) - len(scores)
    estimate = statistics.estimate(list(scores.values()))
    missing = sum(tally.status(name, setting, seed) == "missing" for seed in range(tally.study.seeds))
    return ArmResult(
        name=name,
        design=planned.design,
        parameters=planned.parameters,
        flops=planned.flops,
        setting=setting,
        seeds=len(scores),
        failed=tally.failed(name, setting) + endless,
        missing=missing,
        mean=estimate.mean,
        sd=estimate.sd,
        low=ranges.cut(estimate.low, ranges.range_of(tally.study.metric)),
        high=ranges.cut(estimate.high, ranges.range_of(tally.study.metric)),
        train_seconds=tally.train_seconds(name, setting),
    )


def _failures(designs: tuple[ArmResult, ...]) -> list[str]:
    return [
        f"{arm.name}: {arm.failed} of {arm.seeds + arm.failed + arm.missing} runs at {setting_label(arm.setting)} "
        "diverged or failed and are not in its mean"
        for arm in designs
        if arm.failed
    ]


def matches(study: Study, item: Claim | Reported) -> bool:
    """Whether the study runs under the protocol that a claim or a reported figure belongs to."""
    return (item.data, item.protocol, item.epochs) == (study.data, study.protocol, study.budget.epochs)


def _figures(study: Study) -> list[Reported]:
    """The reported figures of this study's protocol, at settings that it trains."""
    return [item for item in study.reported if matches(study, item) and item.setting in study.settings()]


def _reported(tally: Tally, item: Reported) -> ReportedResult:
    scores = list(_scores(tally, item.arm, item.setting, item.metric).values())
    interval = statistics.prediction_interval(scores)
    low, high = (ranges.cut(end, ranges.range_of(item.metric)) for end in interval or (None, None))
    return ReportedResult(
        source=item.source,
        what=item.what,
        value=item.value,
        mean=statistics.estimate(scores).mean,
        low=low,
        high=high,
        inside=interval[0] <= item.value <= interval[1] if interval else None,
        seeds=len(scores),
    )


def _claim(study: Study, claim: Claim, comparisons: tuple[ComparisonResult, ...]) -> ClaimResult:
    """Holds when every difference it rests on went its way, fails when one was decided otherwise."""
    own = [item for item in comparisons if item.group in (claim.comparison, *claim.also)]
    leans: Literal["holds", "fails", "undecided"] = "undecided"
    if all(item.verdict == claim.expect for item in own):
        leans = "holds"
    elif any(item.verdict not in (claim.expect, "undecided") for item in own):
        leans = "fails"
    why = " ".join(item.sentence for item in own)
    ran = all(item.seeds for item in own)
    if not ran:
        return ClaimResult(
            id=claim.id, text=claim.text, source=claim.source, verdict="not run here", leans=None, why=why
        )
    if not matches(study, claim):
        here = f"{study.data}, {study.protocol}, {study.budget.epochs} epochs"
        why = (
            f"A hint only: it was made for {claim.data}, {claim.protocol}, {claim.epochs} epochs; this is {here}. {why}"
        )
        return ClaimResult(id=claim.id, text=claim.text, source=claim.source, verdict="hint", leans=leans, why=why)
    return ClaimResult(id=claim.id, text=claim.text, source=claim.source, verdict=leans, leans=None, why=why)

"""From records to the verdict: each arm at the setting that validation chose, compared seed by seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from tiebreak.plan.runs import Plan
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.study.schema import (
    Agreement,
    BestSetting,
    Claim,
    Comparison,
    Interaction,
    Order,
    Reported,
    Study,
    setting_label,
)
from tiebreak.text import number_of
from tiebreak.verdict import ranges, sentences, statistics
from tiebreak.verdict.cost_words import cost_sentence
from tiebreak.verdict.grid_edges import edges
from tiebreak.verdict.model import ArmResult, ClaimResult, ComparisonResult, Metric, ReportedResult, Side, Verdict
from tiebreak.verdict.percentile import percentile
from tiebreak.verdict.program_checks import program_warnings
from tiebreak.verdict.sides import arm_scores, example_influence, paired_ranges, paired_scores, side_scores


@dataclass(frozen=True)
class Question:
    """One tested difference: the first side minus the second, as `ComparisonResult` says; `a` and `b` are labels."""

    comparison: Comparison
    a: str
    b: str
    metric: str
    sides: tuple[Side, ...]


def make_verdict(study: Study, plan: Plan, records: Records) -> Verdict:
    """The answer that the records give, complete or not."""
    tally = Tally(study, plan, records)
    questions = [question for item in study.comparisons for question in _questions(tally, item)]
    samples = [_sample(tally, question) for question in questions]
    compared = statistics.compare(samples, margin=study.margin)
    comparisons = tuple(
        _comparison(tally, question, _possible(tally, question, result), statistics.least_seeds(len(questions)))
        for question, result in zip(questions, compared, strict=True)
    )
    designs = tuple(_arm(tally, arm.name) for arm in study.arms)
    finished = sum(identity in records.runs for identity in plan.runs)
    least = statistics.least_seeds(len(samples))
    warned = study.seeds < least  # the plan's warning covers all comparisons: no flag repeats it
    flags = [
        f"{item.name}: {flag}"
        for item, result in zip(comparisons, compared, strict=True)
        for flag in result.flags
        if not (warned and flag == statistics.too_few_flag(result.seeds, least, len(samples)))
        and not (item.difference is None and (item.seeds_needed is None or finished < len(plan.runs)))
    ]
    return Verdict(
        study=study.name,
        question=study.question,
        answer=sentences.answer(comparisons, seeds=study.seeds, complete=finished == len(plan.runs)),
        data=study.data,
        protocol=study.protocol,
        metric=Metric(name=study.metric, goal=study.goal()),
        margin=study.margin,
        seeds=study.seeds,
        planned=len(plan.runs),
        finished=finished,
        designs=designs,
        comparisons=comparisons,
        reported=tuple(_reported(tally, item) for item in _figures(study)),
        claims=tuple(_claim(study, claim, comparisons) for claim in study.claims),
        cost=cost_sentence(comparisons, designs),
        warnings=(*plan.warnings, *program_warnings(tally), *_failures(tally, designs), *flags, *_damage(records)),
    )


def _damage(records: Records) -> list[str]:
    many = len(records.damaged)
    if not many:
        return []
    return [
        f"damaged records were left out ({number_of(many, 'part')}, such as {records.damaged[0]}); `tiebreak run` "
        "with your study makes them again"
    ]


def _questions(tally: Tally, item: Comparison) -> Iterator[Question]:
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


def _sample(tally: Tally, question: Question) -> statistics.Sample:
    """The scores of the seeds that finished on every side."""
    first, second = paired_scores(tally, question.sides)
    seeds = sorted(first.keys() & second.keys())
    a, b = (np.array([scores[seed] for seed in seeds], dtype=np.float64) for scores in (first, second))
    goal, margin = tally.study.goal(question.metric), question.comparison.margin
    return statistics.Sample(a=a, b=b, goal=goal, margin=margin)


def _possible(tally: Tally, question: Question, result: statistics.Compared) -> statistics.Compared:
    """The interval, cut to the values that the difference can take."""
    first, second = paired_ranges(question.sides, tally.study.task)
    within = ranges.of_difference([first], [second])
    return replace(result, low=ranges.cut(result.low, within), high=ranges.cut(result.high, within))


def _comparison(tally: Tally, question: Question, result: statistics.Compared, least: int) -> ComparisonResult:
    low, high = _examples(tally, question, result) or (None, None)
    margin = question.comparison.margin or tally.study.margin
    kind: Literal["pair", "interaction", "setting", "order", "agreement"] = question.comparison.kind
    single = kind not in ("setting", "order") or len(list(_questions(tally, question.comparison))) == 1
    item = ComparisonResult(
        name=question.comparison.name if single else f"{question.comparison.name}: {question.a} vs {question.b}",
        group=question.comparison.name,
        kind=kind,
        primary=question.comparison.primary,
        a=question.a,
        b=question.b,
        sides=question.sides,
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
        seeds_needed=None if _is_lost(tally, question) else result.seeds_needed,
        examples_low=low,
        examples_high=high,
        sentence="",
    )
    return item.model_copy(update={"sentence": sentences.sentence(item, least=least)})


def _is_lost(tally: Tally, question: Question) -> bool:
    """Whether all planned runs of a side have ended without a score: more seeds would not help."""
    seeds = range(tally.study.seeds)
    return any(
        not side_scores(tally, side) and all(tally.status(side.arm, side.setting, seed) != "missing" for seed in seeds)
        for side in question.sides
        if not side.metrics  # an agreement also needs three epochs
    )


def _examples(tally: Tally, question: Question, result: statistics.Compared) -> statistics.Interval | None:
    """The interval over test examples of this difference: would another test set agree?"""
    if len(question.sides) == 1 or result.difference is None:
        return None
    seeds = sorted(set.intersection(*(set(side_scores(tally, side)) for side in question.sides)))
    found = [example_influence(tally, side, seeds) for side in question.sides]
    stacks = [each for each in found if each is not None]
    if len(stacks) < len(found) or len({each.shape[1] for each in stacks}) != 1:
        return None
    if len(stacks) == 4:
        stacks = [stacks[0] - stacks[1], stacks[2] - stacks[3]]
    interval = statistics.example_interval(stacks[0], stacks[1])
    if interval is None:
        return None
    low, high = interval
    if not low <= result.difference <= high:  # outcomes are rounded to float32, scores are not
        shift = result.difference - (low + high) / 2
        low, high = min(low + shift, result.difference), max(high + shift, result.difference)
    return low, high


def _arm(tally: Tally, name: str) -> ArmResult:
    setting, planned = tally.chosen(name), tally.plan.arm(name)
    scores = arm_scores(tally, name, setting, tally.study.metric)
    unusable = len(tally.scores(name, setting, tally.study.metric)) - len(scores)
    estimate = statistics.estimate(list(scores.values()))
    within = ranges.range_of(tally.study.metric, tally.study.task)
    missing = sum(tally.status(name, setting, seed) == "missing" for seed in range(tally.study.seeds))
    return ArmResult(
        name=name,
        design=planned.design,
        parameters=planned.parameters,
        flops=planned.flops,
        setting=setting,
        seeds=len(scores),
        failed=tally.failed(name, setting) + unusable,
        missing=missing,
        mean=estimate.mean,
        sd=estimate.sd,
        low=ranges.cut(estimate.low, within),
        high=ranges.cut(estimate.high, within),
        train_seconds=tally.train_seconds(name, setting),
        step_ms=tally.step_ms(name, setting),
        at_edge=edges(tally, name),
        differences=planned.differences,
    )


def _failures(tally: Tally, designs: tuple[ArmResult, ...]) -> list[str]:
    lines = []
    for arm in designs:
        planned = arm.seeds + arm.failed + arm.missing
        at = f"at {setting_label(arm.setting)} diverged or failed"
        if arm.failed == planned:
            records = (tally.records.runs.get(identity) for _, identity in tally.runs(arm.name, arm.setting))
            reason = next((record.reason for record in records if record is not None and record.reason), "")
            lines.append(f"{arm.name}: all of its {planned} runs {at}{f', such as: {reason}' if reason else ''}")
        elif arm.failed:
            lines.append(f"{arm.name}: {arm.failed} of {planned} runs {at} and are not in its mean")
    return lines


def matches(study: Study, item: Claim | Reported) -> bool:
    """Whether the study runs under the protocol that a claim or a reported figure belongs to."""
    return (item.data, item.protocol, item.epochs) == (study.data, study.protocol, study.budget.epochs)


def _figures(study: Study) -> list[Reported]:
    """The reported figures of this study's protocol, at settings that it trains."""
    return [item for item in study.reported if matches(study, item) and item.setting in study.settings(item.arm)]


def _reported(tally: Tally, item: Reported) -> ReportedResult:
    scores = list(arm_scores(tally, item.arm, item.setting, item.metric).values())
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
        percentile=percentile(scores, item.value),
        below=sum(score < item.value for score in scores),
    )


def _claim(study: Study, claim: Claim, comparisons: tuple[ComparisonResult, ...]) -> ClaimResult:
    """Holds when every difference it rests on went its way, fails when one was decided otherwise."""
    own = sentences.claim_comparisons(claim, comparisons)
    leans: Literal["holds", "fails", "undecided"] = "undecided"
    if all(item.verdict == claim.expect for item in own):
        leans = "holds"
    elif any(item.verdict not in (claim.expect, "undecided") for item in own):
        leans = "fails"
    run = all(item.seeds for item in own)
    hint = run and not matches(study, claim)
    return ClaimResult(
        id=claim.id,
        text=claim.text,
        source=claim.source,
        verdict="not run here" if not run else "hint" if hint else leans,
        leans=leans if hint else None,
        why=sentences.claim_reason(study, claim, comparisons, hint=hint),
    )

"""From records to the verdict: each arm at the setting that validation chose, compared seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tiebreak.plan.runs import Plan
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.study.schema import (
    Claim,
    Reported,
    Study,
    setting_label,
)
from tiebreak.text import number_of
from tiebreak.verdict import ranges, sentences, statistics
from tiebreak.verdict.cost_words import cost_sentence
from tiebreak.verdict.flags import flag_lines
from tiebreak.verdict.grid_edges import edges
from tiebreak.verdict.model import (
    ArmResult,
    ClaimResult,
    ComparisonResult,
    Look,
    Metric,
    ReportedResult,
    Verdict,
    measured,
)
from tiebreak.verdict.percentile import percentile
from tiebreak.verdict.program_checks import program_warnings
from tiebreak.verdict.questions import Question, all_questions, questions, sample
from tiebreak.verdict.ranking import ranking
from tiebreak.verdict.sides import arm_scores, example_influence, side_scores
from tiebreak.verdict.solo_time import solo_seconds, time_ratio
from tiebreak.verdict.stopping import earlier_looks, further_looks, look_now, looks_of, stopping_of

NARROW = 0.001  # an adjusted p above it is a narrow finding


def make_verdict(study: Study, plan: Plan, records: Records) -> Verdict:
    """The answer that the records give, complete or not."""
    tally = Tally(study, plan, records)
    asked = all_questions(tally)
    least = statistics.least_seeds(len(asked))
    looks = looks_of(tally)
    compared = statistics.compare([sample(tally, question) for question in asked], margin=study.margin, looks=looks)
    task = study.task
    possible = [ranges.possible(result, question.range(task)) for question, result in zip(asked, compared, strict=True)]
    now = look_now(tally, possible, looks)
    comparisons = tuple(
        _comparison(tally, question, result, least, (*before, *last))
        for question, result, before, last in zip(asked, possible, earlier_looks(tally, looks), now, strict=True)
    )
    designs = tuple(_arm(tally, arm.name) for arm in study.arms)
    finished = sum(identity in records.runs for identity in plan.runs)
    complete = finished == len(plan.runs)
    stopping = stopping_of(tally, looks, comparisons, complete=complete)
    warned = study.seeds < least  # the plan's warning covers all comparisons: no flag repeats it
    flags = [
        (item, flag)
        for item in comparisons
        for flag in item.flags
        if not (warned and flag == statistics.too_few_flag(item.seeds, least, len(asked)))
        and not (item.difference is None and (item.seeds_needed is None or finished < len(plan.runs)))
    ]
    return Verdict(
        study=study.name,
        question=study.question,
        answer=sentences.answer(comparisons, seeds=study.seeds, complete=complete, stopping=stopping),
        data=study.data,
        protocol=study.protocol,
        metric=Metric(name=study.metric, goal=study.goal()),
        margin=study.margin,
        seeds=study.seeds,
        planned=len(plan.runs),
        finished=finished,
        ranking=ranking(tally, looks),
        stopping=stopping,
        designs=designs,
        comparisons=comparisons,
        reported=tuple(_reported(tally, item) for item in _figures(study)),
        claims=tuple(_claim(study, claim, comparisons) for claim in study.claims),
        cost=cost_sentence(comparisons, designs),
        warnings=(
            *_planned(tally, asked),
            *further_looks(tally, looks),
            *program_warnings(tally),
            *_failures(tally, designs),
            *flag_lines(flags),
            *_damage(records),
        ),
    )


def _planned(tally: Tally, asked: Sequence[Question]) -> list[str]:
    """The plan's warnings; without that of too few seeds where no seed would help any comparison."""
    lost = all(_is_lost(tally, question) for question in asked)
    few = statistics.too_few_seeds(tally.study.seeds, len(asked)) if lost else ""
    return [line for line in tally.plan.warnings if line != few]


def settings_flag(item: ComparisonResult) -> str:
    """The flag of a narrow finding between arms that chose different settings; empty where there is nothing to say.

    What choosing on validation does to equal arms is simulated in tests/verdict/test_selection.py.
    """
    narrow = item.verdict in ("a", "b") and item.p_adjusted is not None and item.p_adjusted > NARROW
    if item.kind != "pair" or not narrow or item.sides[0].setting == item.sides[1].setting:
        return ""
    chosen = " and ".join(setting_label(side.setting) for side in item.sides)
    return (
        f"the arms chose different settings ({chosen}); of equal arms that do so 8 to 17 % look different, and "
        f"this finding is narrow (p {item.p_adjusted:.2g}): more seeds would make it safe"
    )


def _damage(records: Records) -> list[str]:
    many = len(records.damaged)
    if not many:
        return []
    return [
        f"damaged records were left out ({number_of(many, 'part')}, such as {records.damaged[0]}); `tiebreak run` "
        "with your study makes them again"
    ]


def _comparison(
    tally: Tally, question: Question, result: statistics.Compared, least: int, path: tuple[Look, ...]
) -> ComparisonResult:
    low, high = _examples(tally, question, result) or (None, None)
    crossed, times = (
        [ranges.cut(end, question.range(tally.study.task)) for end in _crossed(result, low, high)],
        _times(tally, question),
    )
    margin = question.comparison.margin or tally.study.margin
    kind: Literal["pair", "interaction", "setting", "order", "agreement"] = question.comparison.kind
    single = kind not in ("setting", "order") or len(list(questions(tally, question.comparison))) == 1
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
        **measured(replace(result, seeds_needed=None) if _is_lost(tally, question) else result),
        examples_low=low,
        examples_high=high,
        crossed_low=crossed[0],
        crossed_high=crossed[1],
        path=path,
        sentence="",
        time_ratio=times[0],
        time_low=times[1],
        time_high=times[2],
    )
    flags = (*item.flags, *filter(None, [settings_flag(item)]))
    return item.model_copy(update={"sentence": sentences.sentence(item, least=least), "flags": flags})


def _times(tally: Tally, question: Question) -> tuple[float | None, float | None, float | None]:
    if question.comparison.kind != "pair":
        return None, None, None
    return time_ratio(tally, question.a, question.b) or (None, None, None)


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


def _crossed(result: statistics.Compared, low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """The interval over seeds and test examples together, from that over seeds and that over examples (low, high).

    The variances of crossed factors add, for each end on its own: an interval over seeds may be lopsided, or cut at 0.
    Their interaction is in both, so the interval is never too narrow.
    """
    middle = result.difference
    if middle is None or result.low is None or result.high is None or low is None or high is None:
        return None, None
    below, above = math.hypot(middle - result.low, middle - low), math.hypot(result.high - middle, high - middle)
    return middle - below, middle + above


def _arm(tally: Tally, name: str) -> ArmResult:
    setting, planned = tally.chosen(name), tally.plan.arm(name)
    scores = arm_scores(tally, name, setting, tally.study.metric)
    unusable = len(tally.scores(name, setting, tally.study.metric)) - len(scores)
    estimate = statistics.estimate(list(scores.values()))
    within = ranges.range_of(tally.study.metric, tally.study.task)
    missing = sum(tally.status(name, setting, seed) == "missing" for seed in range(tally.study.seeds))
    times = tally.step_times(name, setting)
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
        solo_seconds=solo_seconds(tally, name),
        memory_bytes=times.memory_bytes if times else None,
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
    low, high = (ranges.cut(end, ranges.range_of(item.metric, tally.study.task)) for end in interval or (None, None))
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

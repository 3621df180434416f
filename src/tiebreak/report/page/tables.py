"""The tables of a report as rows of text: nothing is computed here that the verdict or the records do not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiebreak.plan.runs import Difference, Plan
from tiebreak.report import claim_text, formatting
from tiebreak.study import registry
from tiebreak.study.command_template import value_text
from tiebreak.study.program_rules import program_line
from tiebreak.study.schema import Arm, Reported, Setting, Study, setting_label
from tiebreak.text import listed, number_of, rounded
from tiebreak.verdict import statistics
from tiebreak.verdict.model import ArmResult, ReportedResult, Verdict
from tiebreak.verdict.sentences import Number, claim_reason

if TYPE_CHECKING:
    from tiebreak.report.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class ArmRow:
    """One arm at its chosen setting."""

    name: str
    index: int
    design: str
    setting: str
    edge: str  # of the grid, where the setting lies at one
    mean: str
    interval: str
    runs: str  # "9 of 10"
    failed: str
    parameters: str
    flops: str
    seconds: str
    step: str  # a training step, timed alone
    memory: str  # of a run and one training step


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """Validation score of one arm at one setting."""

    arm: str
    index: int
    setting: str
    chosen: bool
    mean: float | None
    mean_text: str
    runs: str
    scores: tuple[float, ...]


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
    published: str
    ours: str
    interval: str
    seeds: str
    position: str  # of the published figure: inside or outside our interval
    percentile: str  # of the published figure among our single runs


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """A claim and its outcome, as text."""

    id: str
    text: str
    source: str
    outcome: str
    reason: str


def arm_rows(verdict: Verdict) -> list[ArmRow]:
    """The table of arms, in the order of the study."""
    return [_arm_row(index, item, verdict.seeds) for index, item in enumerate(verdict.designs)]


def _arm_row(index: int, item: ArmResult, planned: int) -> ArmRow:
    return ArmRow(
        name=item.name,
        index=index,
        design=item.design,
        setting=_setting(item),
        edge=listed([f"{edge.end} {edge.name} tried" for edge in item.at_edge]),
        mean=formatting.score(item.mean),
        interval=formatting.interval(item.low, item.high),
        runs=f"{item.seeds} of {planned}",
        failed=str(item.failed) if item.failed else "none",
        parameters=formatting.count(item.parameters),
        flops=formatting.flops(item.flops),
        seconds=formatting.duration(item.train_seconds),
        step="not timed" if item.step_ms is None else f"{rounded(item.step_ms)} ms",
        memory="not measured" if item.memory_bytes is None else formatting.size(item.memory_bytes),
    )


def _setting(item: ArmResult) -> str:
    """The setting that was chosen; none is, while an arm has no run to choose by."""
    if not item.setting:
        return "not tuned"
    return setting_label(item.setting) if item.seeds or item.failed else "missing"


def arm_descriptions(study: Study, plan: Plan) -> list[tuple[str, str]]:
    """What every arm is: the first in words, every other by exactly what makes it different from the first."""
    if study.program is not None:
        return [(arm.name, _program_arm(study, arm)) for arm in study.arms]
    first, *others = study.arms
    known = {arm.name: arm.differences for arm in plan.arms}
    return [(first.name, _first_arm(study, first)), *((arm.name, _other_arm(study, arm, known)) for arm in others)]


def arm_line(study: Study, arm: Arm) -> str:
    """What an arm is, by its study alone: its design, and what the arm sets, with what each option means."""
    kinds = {"options": study.entry.options, "evaluation": study.entry.evaluation}
    known = {name: option for kind in kinds.values() for name, option in kind.items()}
    given = {**arm.build, **arm.options, **arm.evaluation, **arm.fixed}
    given |= arm.model_dump(include={"batch", "init", "precision"}, exclude_defaults=True)
    texts = [
        f"{key}={value}" + (f" (the option: {known[key].line})" if key in known else "") for key, value in given.items()
    ]
    trained = [f"trained with {arm.optimiser.kind}"] if arm.optimiser is not None else []
    trained += [f"{arm.epochs_times} times the epochs"] if arm.epochs_times > 1 else []
    return "; ".join([_design_line(arm), *trained, *texts])


def _program_arm(study: Study, arm: Arm) -> str:
    values = [f"{key}={value_text(value)}" for key, value in arm.with_values.items()]
    return "; ".join([program_line(study, arm), *values])


def _first_arm(study: Study, arm: Arm) -> str:
    rule = study.optimiser_of(arm)
    given = {**arm.build, **arm.options, **arm.evaluation, **arm.fixed}
    trained = f"trained with {rule.kind} and a {rule.schedule.kind} schedule"
    changes = [f"{key}={value}" for key, value in given.items()]
    return "; ".join([_design_line(arm), trained, *changes])


def _other_arm(study: Study, arm: Arm, known: Mapping[str, Sequence[Difference] | None]) -> str:
    first, apart = study.arms[0], known.get(arm.name)
    if apart is None:  # of an older version
        return _design_line(arm)
    texts = [_with_meaning(study, each) for each in apart if each.kind != "design"]
    if arm.design != first.design:
        return "; ".join([_design_line(arm), *(texts or [f"otherwise as {first.name}"])])
    return f"as {first.name}, but {', '.join(texts)}" if texts else f"the same as {first.name}"


def _design_line(arm: Arm) -> str:
    design = registry.DESIGNS.get(arm.design)
    return design.line if design is not None else f"the design {arm.design}"


def _with_meaning(study: Study, each: Difference) -> str:
    """A difference with what the option means, where the task says so."""
    task = study.entry
    option = {"options": task.options, "evaluation": task.evaluation}.get(each.kind, {}).get(each.name)
    return f"{each.text} ({option.line})" if option is not None else each.text


def setting_rows(evidence: Evidence) -> list[SettingRow]:
    """Validation score of every arm with runs of its own at every setting of the grid, grouped by setting."""
    own = evidence.arms_with_runs()
    study = evidence.study
    return [
        _setting_row(evidence, index, arm, setting)
        for setting in study.every_setting()
        for index, arm in own
        if setting in study.settings(arm)
    ]


def _setting_row(evidence: Evidence, index: int, arm: str, setting: Setting) -> SettingRow:
    result, scores = evidence.result(arm), evidence.scores(arm, setting, f"val_{evidence.study.metric}")
    mean = statistics.estimate(list(scores.values())).mean
    return SettingRow(
        arm=arm,
        index=index,
        setting=setting_label(setting),
        chosen=result is not None and mean is not None and dict(result.setting) == setting,
        mean=mean,
        mean_text=formatting.score(mean),
        runs=f"{len(scores)} of {evidence.study.seeds}",
        scores=tuple(scores.values()),
    )


def reported_rows(evidence: Evidence) -> list[ReportedRow]:
    """Published figures against our distribution of single runs."""
    asked = {(item.source, item.what): item for item in evidence.study.reported}
    return [_reported_row(evidence, item, asked.get((item.source, item.what))) for item in evidence.verdict.reported]


def _reported_row(evidence: Evidence, item: ReportedResult, asked: Reported | None) -> ReportedRow:
    return ReportedRow(
        source=formatting.sources([item.source]),
        what=item.what,
        index=(evidence.index(asked.arm) if asked else None) or 0,
        metric=asked.metric if asked else evidence.verdict.metric.name,
        value=item.value,
        mean=item.mean,
        low=item.low,
        high=item.high,
        inside=item.inside,
        published=f"{item.value:g}",  # as it was printed
        ours=formatting.score(item.mean),
        interval=formatting.interval(item.low, item.high),
        seeds=str(item.seeds),
        position={True: "inside", False: "outside", None: "too few runs"}[item.inside],
        percentile=_percentile(item),
    )


def _percentile(item: ReportedResult) -> str:
    if item.percentile is None:
        return claim_text.percentile_text(None)
    return f"{claim_text.percentile_text(item.percentile)}; {item.below} of {number_of(item.seeds, 'run')} below"


def claim_rows(evidence: Evidence, number: Number = formatting.signed) -> list[ClaimRow]:
    """The claims that the study is about; their reasons have as many decimals as the tables."""
    study, comparisons = evidence.study, evidence.verdict.comparisons
    claims = {claim.id: claim for claim in study.claims}
    return [
        ClaimRow(
            id=item.id,
            text=item.text,
            source=formatting.sources(item.source),
            outcome=formatting.claim_outcome(item),
            reason=claim_reason(study, claims[item.id], comparisons, hint=item.verdict == "hint", number=number),
        )
        for item in evidence.verdict.claims
    ]

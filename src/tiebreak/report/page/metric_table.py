"""The metrics of a task: their order, their names for readers, every arm's scores; and the time of an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence
from tiebreak.study import registry
from tiebreak.study.registry import Goal
from tiebreak.study.schema import Study
from tiebreak.text import listed
from tiebreak.verdict import statistics

NONE = "–"  # one run has no standard deviation


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One arm's test scores: mean, standard deviation over seeds and n for every metric."""

    arm: str
    index: int
    cells: Sequence[tuple[str, str, str]]
    runs: str  # the n of the study's own metric: said where another differs


def ordered(study: Study) -> list[str]:
    """The task's metrics, the study's own first."""
    return [study.metric, *(name for name in study.entry.metrics if name != study.metric)]


def drawn(study: Study) -> list[str]:
    """The metrics with curves of their own: not those that only the table has."""
    known = study.entry.metrics
    compared = {study.metric, *(item.metric for item in study.comparisons)}
    return [name for name in ordered(study) if not known[name].detail or name in compared]


def readable(metric: str) -> str:
    """A metric's name for readers."""
    return registry.metric_label(metric)


def directed(metric: str, goal: Goal) -> str:
    """A metric that must not be misread says which way is better.

    >>> directed("accuracy", "max"), directed("character_error", "min")
    ('accuracy', 'character error (lower is better)')
    """
    return f"{readable(metric)} (lower is better)" if goal == "min" else readable(metric)


def quantity(metric: str) -> str:
    """A recorded metric in words: `val_accuracy` is the validation accuracy."""
    if metric == "train_loss_running":
        return "training loss, running mean over epochs"
    for prefix, split in (("val_", "validation"), ("train_", "training")):
        if metric.startswith(prefix):
            return f"{split} {readable(metric.removeprefix(prefix))}"
    return f"test {readable(metric)}"


def table(evidence: Evidence) -> tuple[list[str], list[MetricRow]]:
    """Every metric with a test score, and the scores of every arm at its chosen setting; nothing below two metrics."""
    found = {
        (arm.name, metric): _scores(evidence, arm.name, metric)
        for arm in evidence.study.arms
        for metric in ordered(evidence.study)
    }
    shown = [name for name in ordered(evidence.study) if any(found[arm.name, name] for arm in evidence.study.arms)]
    if len(shown) < 2:
        return [], []
    rows = [
        MetricRow(
            arm=arm.name,
            index=index,
            cells=[_cell(found[arm.name, name]) for name in shown],
            runs=str(len(found[arm.name, evidence.study.metric])),
        )
        for index, arm in enumerate(evidence.study.arms)
    ]
    return [directed(name, evidence.study.goal(name)) for name in shown], rows


def _scores(evidence: Evidence, arm: str, metric: str) -> list[float]:
    """Scores of the arm's finished runs at its chosen setting; a run tested before a metric existed has none."""
    evaluation = evidence.plan.arm(arm).evaluation
    found = [
        final.metrics[metric]
        for _, identity in evidence.identities(arm)
        if (final := evidence.records.finals.get(identity, {}).get(evaluation)) is not None
        and evidence.status(identity) == "done"
        and metric in final.metrics
    ]
    return [score for score in found if statistics.usable(score)]


def _cell(scores: Sequence[float]) -> tuple[str, str, str]:
    estimate = statistics.estimate(scores)
    deviation = formatting.score(estimate.sd) if estimate.sd is not None else NONE
    return formatting.score(estimate.mean), deviation, str(estimate.n)


def lower_is_better(evidence: Evidence) -> str:
    """The compared metrics in which less is better, in words."""
    compared = dict.fromkeys(item.metric for item in evidence.verdict.comparisons)
    return listed([readable(name) for name in compared if evidence.study.goal(name) == "min"])


def epoch_seconds(evidence: Evidence) -> str:
    """The median training time of an epoch of every arm at its chosen setting, in words; empty without records."""
    if evidence.study.program is not None:  # only the time of the whole process is known
        return ""
    found = []
    for _, arm in evidence.arms_with_runs():
        seconds = [
            record.seconds["train"]
            for _, identity in evidence.identities(arm)
            for record in evidence.epochs(identity).values()
            if "train" in record.seconds
        ]
        found += [f"{arm} {formatting.duration(median(seconds))}"] if seconds else []
    if not found:
        return ""
    return (
        f"{', '.join(found)} (median over epochs and seeds). For runs that were trained together, a run's share of the "
        "time: it does not say how long a run takes alone, nor which design is faster"
    )

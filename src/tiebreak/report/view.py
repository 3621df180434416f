"""Everything that a page shows, as text, rows and figures: what the two templates read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tiebreak.report import figures, provenance, tables, words
from tiebreak.report.evidence import Evidence
from tiebreak.report.tables import ReportedRow


@dataclass(frozen=True, kw_only=True)
class Legend:
    """An arm beside its colour, and what is drawn of it."""

    index: int
    text: str


@dataclass(frozen=True, kw_only=True)
class ReportedPanel:
    """The published figures of one metric."""

    quantity: str
    svg: str


def tiebreak_version() -> str:
    """The installed version; `unknown` in a bare source tree."""
    try:
        return version("tiebreak")
    except PackageNotFoundError:
        return "unknown"


def content(evidence: Evidence) -> dict[str, Any]:
    """The text, tables and notes of a report; no figures."""
    verdict = evidence.verdict
    sides = evidence.sides()
    return {
        "version": tiebreak_version(),
        "verdict": verdict,
        "study": evidence.study,
        "primary": verdict.primary,
        "main": next(row for row in tables.comparison_rows(verdict) if row.primary),
        "badge": words.outcome(verdict.primary, verdict.margin),
        "arms": tables.arm_rows(verdict),
        "comparisons": tables.comparison_rows(verdict),
        "settings": tables.setting_rows(evidence),
        "seeds": tables.seed_rows(evidence),
        "sides": (sides.a, sides.b),
        "ahead": _ahead(evidence),
        "reported": tables.reported_rows(evidence),
        "claims": tables.claim_rows(verdict),
        "hint": words.HINT if any(claim.verdict == "hint" for claim in verdict.claims) else "",
        "terms": evidence.plan.terms,
        "warnings": list(dict.fromkeys((*verdict.warnings, *evidence.plan.warnings))),
        "unfinished": evidence.unfinished(),
        "data": provenance.data_rows(evidence.plan.data),
        "versions": evidence.versions(),
        "commands": provenance.commands(verdict),
        "identities": words.number_of(len(evidence.plan.runs), "run"),
        "facts": _facts(evidence),
    }


def pictures(evidence: Evidence) -> dict[str, Any]:
    """The figures of the page with their legends, keyed as the template calls them."""
    verdict, metric = evidence.verdict, evidence.study.metric
    sides = evidence.sides()
    differences = [a - b for a, b in sides.pairs.values()]
    goal = evidence.study.goal(verdict.primary.metric)
    difference = {
        size: figures.difference_bar(
            verdict.primary, margin=verdict.margin, goal=goal, by_seed=differences, width=width
        )
        for size, width in (("narrow", figures.NARROW), ("wide", figures.WIDE))
    }
    curves = [_curves(evidence, key) for key in (f"val_{metric}", "train_loss")]
    settings = tables.setting_rows(evidence)
    return {
        "difference": difference,
        "dots": 0 < len(differences) <= figures.MOST_DOTS,
        "validation_curves": figures.learning_curves(curves[0], name="validation", quantity=f"validation {metric}"),
        "loss_curves": figures.learning_curves(curves[1], name="loss", quantity="training loss"),
        "curve_legend": _curve_legend(evidence, curves[0]),
        "setting_grid": figures.setting_grid(settings, quantity=f"validation {metric}"),
        "setting_dots": sum(len(row.scores) for row in settings) <= figures.MOST_DOTS,
        "arm_legend": [Legend(index=index, text=arm.name) for index, arm in enumerate(evidence.study.arms)],
        "lines": f"; the first {figures.MOST_LINES} are drawn" if len(differences) > figures.MOST_LINES else "",
        "paired_seeds": figures.paired_seeds(sides, quantity=f"test {verdict.primary.metric}"),
        "reported_panels": _reported_panels(tables.reported_rows(evidence)),
    }


def _facts(evidence: Evidence) -> list[tuple[str, str, str]]:
    """What the answer rests on and what it cost: a title, the value, a remark."""
    verdict = evidence.verdict
    primary, seeds = verdict.primary, evidence.study.seeds
    shown = [result for result in verdict.designs if result.name in (primary.a, primary.b)] or list(verdict.designs)
    sizes = {result.parameters for result in shown}
    if len(sizes) == 1:
        size, remark = words.count(sizes.pop()), f"each of {', '.join(result.name for result in shown)}"
    else:
        size = " / ".join(words.count(result.parameters) for result in shown)
        remark = " / ".join(result.name for result in shown)
    return [
        ("Seeds", f"{primary.seeds} of {seeds}", "paired: same data order and random streams for both arms"),
        (
            "Training time",
            words.duration(evidence.train_seconds()),
            f"{verdict.finished} of {words.number_of(verdict.planned, 'planned run')} finished",
        ),
        ("Parameters", size, remark),
    ]


def _ahead(evidence: Evidence) -> str:
    sides = evidence.sides()
    pairs = sides.pairs
    above = sum(a > b for a, b in pairs.values())
    return f"{sides.a} scored higher in {above} of {words.number_of(len(pairs), 'seed')}"


def _curves(evidence: Evidence, key: str) -> list[figures.Curve]:
    return [
        figures.Curve(arm=arm.name, index=index, points=evidence.curve(arm.name, key))
        for index, arm in enumerate(evidence.study.arms)
    ]


def _curve_legend(evidence: Evidence, curves: Sequence[figures.Curve]) -> list[Legend]:
    rows = {row.name: row for row in tables.arm_rows(evidence.verdict)}
    legend = []
    for curve in curves:
        setting = rows[curve.arm].setting if curve.arm in rows else "no setting"
        n = curve.points[-1].n if curve.points else 0
        legend.append(
            Legend(index=curve.index, text=f"{curve.arm}, {setting}: n = {n} of {evidence.study.seeds} seeds")
        )
    return legend


def _reported_panels(rows: Sequence[ReportedRow]) -> list[ReportedPanel]:
    panels = []
    for number, metric in enumerate(dict.fromkeys(row.metric for row in rows)):
        quantity = _quantity(metric)
        same = [row for row in rows if row.metric == metric]
        svg = figures.reported_figures(same, name=f"reported-{number}", quantity=quantity)
        panels.append(ReportedPanel(quantity=quantity, svg=svg))
    return panels


def _quantity(metric: str) -> str:
    """A recorded metric in words: `val_accuracy` is the validation accuracy."""
    for prefix, split in (("val_", "validation"), ("train_", "training")):
        if metric.startswith(prefix):
            return f"{split} {metric.removeprefix(prefix).replace('_', ' ')}"
    return f"test {metric}"

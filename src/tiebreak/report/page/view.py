"""Everything that a report shows, as text, rows and figures: the variables of its two templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import gallery
from tiebreak.report.figures import looks_plot, main_figures, pareto
from tiebreak.report.figures.drawing import Legend
from tiebreak.report.figures.small_multiples import MOST_TOGETHER
from tiebreak.report.page import comparisons, metric_table, provenance, tables
from tiebreak.report.page.comparisons import ComparisonRow, LookRow, SeedRow
from tiebreak.report.page.meaning import meaning
from tiebreak.report.page.tables import ReportedRow
from tiebreak.report.training_speed import training_rows
from tiebreak.text import listed, number_of
from tiebreak.verdict import ranges
from tiebreak.verdict.grid_edges import edge_sentences, wider_arms, wider_grid
from tiebreak.verdict.model import ComparisonResult
from tiebreak.verdict.ranking import too_few_to_rank
from tiebreak.verdict.sentences import Number

SECTIONS = {  # anchor: the name in the table of contents, the heading
    "arms": ("Arms", "What was compared"),
    "comparisons": ("Comparisons", "Comparisons"),
    "claims": ("Claims", "Claims"),
    "reported": ("Published figures", "Published figures against our runs"),
    "curves": ("Learning curves", "Learning curves"),
    "agreement": ("Metrics", "Do the metrics agree?"),
    "settings": ("Settings", "Settings tried"),
    "seeds": ("Seeds", "Seed by seed"),
    "samples": ("Samples", "Sample outputs"),
    "attention": ("Attention", "Attention weights"),
    "breakdown": ("Breakdown", "Scores by kind of example"),
    "graph": ("Graph", "The graph, node by node"),
    "robustness": ("Robustness", "Shifted, rotated and scaled images"),
    "examples": ("Misclassified images", "Misclassified images"),
    "confusions": ("Confusions", "Confusion matrices"),
    "activations": ("First layer", "Activations of the first layer"),
    "equal": ("Held equal", "What was held equal"),
    "failures": ("Failures", "Failed and missing runs"),
    "provenance": ("Provenance", "Where the numbers come from"),
}
EXHIBITS = ("samples", "attention", "breakdown", "graph", "robustness", "examples", "confusions", "activations")
OPTIONAL = ("claims", "reported", "agreement", *EXHIBITS)  # absent without content


@dataclass(frozen=True, kw_only=True)
class Main:
    """A primary comparison, which answers the question: its row, and its seeds one by one."""

    item: ComparisonResult
    subtraction: str  # what is subtracted from what
    row: ComparisonRow
    sides: tuple[str, str]
    quantity: str  # what the scores of the sides are
    seeds: Sequence[SeedRow]
    looks: Sequence[LookRow]
    ahead: str


@dataclass(frozen=True, kw_only=True)
class MainFigures:
    """The figures of such a comparison."""

    narrow: str
    wide: str
    dots: bool
    pairs: str
    looks: str  # of a comparison that was looked at more than once
    drawn_seeds: str  # how many seeds are drawn, where not all are


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


def content(evidence: Evidence, number: Number = formatting.signed) -> dict[str, Any]:
    """The text, tables and notes of a report; no figures. `number` writes the differences in sentences."""
    verdict = evidence.verdict
    primary = [item for item in verdict.comparisons if item.primary]
    values = {
        "version": tiebreak_version(),
        "verdict": verdict,
        "unranked": too_few_to_rank(verdict.seeds, len(verdict.ranking)),
        "answer": comparisons.answer(verdict, number),
        "meaning": meaning(primary, countable=evidence.study.program is None),
        "study": evidence.study,
        "mains": [_main(evidence, item) for item in primary],
        "badge": formatting.headline(primary),
        "arms": tables.arm_rows(verdict),
        "metrics": metric_table.table(evidence),
        "lower": metric_table.lower_is_better(evidence),
        "edges": edge_sentences(verdict.designs),
        "wider_arms": "" if wider_grid(verdict.designs) else wider_arms(verdict.designs),
        "arm_descriptions": tables.arm_descriptions(evidence.study, evidence.plan),
        "comparisons": comparisons.comparison_rows(verdict),
        "sentences": comparisons.question_answers(verdict, number),
        "has_other_metrics": any(item.metric != verdict.metric.name for item in verdict.comparisons),
        "has_interaction": any(item.kind == "interaction" for item in verdict.comparisons),
        "settings": tables.setting_rows(evidence),
        "reported": tables.reported_rows(evidence),
        "claims": tables.claim_rows(evidence, number),
        "hint": formatting.HINT if any(claim.verdict == "hint" for claim in verdict.claims) else "",
        "terms": evidence.plan.terms,
        "warnings": provenance.shared_warnings(verdict, evidence.plan),
        "unfinished": evidence.unfinished(),
        "data": [*provenance.data_rows(evidence.plan.data), *provenance.code_rows(evidence.study)],
        "synthetic": evidence.plan.data.synthetic,
        "versions": [
            *((f"training of {name}", how) for name, how in training_rows(evidence.plan, evidence.records.state)),
            *((("training of an epoch", spent),) if (spent := metric_table.epoch_seconds(evidence)) else ()),
            *evidence.versions(),
        ],
        "commands": provenance.commands(verdict),
        "identities": number_of(len(evidence.plan.runs), "run"),
        "facts": _facts(evidence),
        **gallery.content(evidence),
    }
    there = {anchor: short for anchor, (short, _) in SECTIONS.items() if anchor not in OPTIONAL or values[anchor]}
    headings = {anchor: heading for anchor, (_, heading) in SECTIONS.items()}
    if len(evidence.study.every_setting()) == 1:
        headings["settings"] = "Validation scores"
    if len(values["breakdown"]) == 1:
        headings["breakdown"] = values["breakdown"][0].title
    sources = [name for item in verdict.claims for name in item.source] + [item.source for item in verdict.reported]
    described = any("report R" in text for _, text in values["arm_descriptions"])
    lines = {
        "arms_reports_line": formatting.reports_line(formatting.REPORTS) if described else "",
        "reports_line": "" if described else formatting.reports_line(sources),  # where a report is named first
    }
    return {**values, "contents": there, "headings": headings, **lines}


def figures(evidence: Evidence) -> dict[str, Any]:
    """The figures of the page with their legends, keyed as the template calls them."""
    metric, *others = metric_table.drawn(evidence.study)
    primary = [item for item in evidence.verdict.comparisons if item.primary]
    drawn = (f"val_{metric}", "train_loss", *(f"val_{other}" for other in others))
    curves = _curves(evidence, f"val_{metric}")
    settings, reported = tables.setting_rows(evidence), tables.reported_rows(evidence)
    everyone = [Legend(index=index, text=arm.name) for index, arm in enumerate(evidence.study.arms)]
    return {
        "main_figures": [_main_figures(evidence, item, number) for number, item in enumerate(primary)],
        "curve_panels": [svg for key in drawn if (svg := _curve_panel(evidence, key))],
        "curves_apart": sum(bool(curve.points) for curve in curves) > MOST_TOGETHER,
        "curves_missing": _no_curves(curves),
        "curves_lower": _lower(evidence),
        "curve_legend": _curve_legend(evidence, curves, drawn[1:]),
        "setting_grid": main_figures.setting_grid(
            settings, quantity=f"validation {metric_table.directed(metric, evidence.study.goal())}"
        ),
        "setting_dots": sum(len(row.scores) for row in settings) <= main_figures.MOST_DOTS,
        "pareto": pareto.pareto_plot(
            evidence.verdict.designs,
            quantity=f"test {metric_table.directed(metric, evidence.study.goal())}",
            goal=evidence.study.goal(),
        ),
        "pareto_legend": everyone,
        "arm_legend": [legend for legend in everyone if legend.text not in evidence.shared],
        "reported_panels": _reported_panels(reported),
        "reported_legend": [legend for legend in everyone if legend.index in {row.index for row in reported}],
        **gallery.figures(evidence),
    }


def notebook_figures(evidence: Evidence) -> dict[str, Any]:
    """The difference, the seeds of each primary comparison and the learning curve of the metric, for a notebook."""
    primary = [item for item in evidence.verdict.comparisons if item.primary]
    drawn = [_main_figures(evidence, item, number) for number, item in enumerate(primary)]
    key = f"val_{evidence.study.metric}"
    panel = _curve_panel(evidence, key)
    small = [*(each.pairs for each in drawn), panel]
    return {
        "difference_figures": [each.wide for each in drawn if each.wide],
        "small_figures": [svg for svg in small if svg],
        "curve_legend": _curve_legend(evidence, _curves(evidence, key)) if panel else [],
    }


def _facts(evidence: Evidence) -> list[tuple[str, str, str]]:
    """What the answer rests on and what it cost: a title, the value, a remark."""
    verdict = evidence.verdict
    primary = [item for item in verdict.comparisons if item.primary]
    shown = [result for result in verdict.designs if result.name in evidence.primary_arms()]
    sizes = {result.parameters for result in shown}
    least = min((item.seeds for item in primary), default=0)
    sizes_known = sizes != {None}
    if len(sizes) == 1:
        size, remark = formatting.count(sizes.pop()), f"each of {', '.join(result.name for result in shown)}"
    else:
        size = " / ".join(formatting.count(result.parameters) for result in shown)
        remark = " / ".join(result.name for result in shown)
    return [
        ("Seeds", f"{least} of {evidence.study.seeds}", _pairing(evidence)),
        ("Training time", formatting.duration(evidence.train_seconds()), _finished(evidence)),
        *([("Parameters", size, remark)] if sizes_known else []),
    ]


def _pairing(evidence: Evidence) -> str:
    if evidence.study.program is not None:
        return "paired: both sides were given the same seed"
    return "paired: same data order and random streams on both sides"


def _finished(evidence: Evidence) -> str:
    """How many runs finished, and how many diverged or failed."""
    status = [evidence.status(identity) for identity in evidence.plan.runs]
    lost = len(status) - status.count("done") - status.count("missing")
    done = f"{status.count('done')} of {number_of(len(status), 'planned run')} finished"
    return f"{done}, {lost} diverged or failed" if lost else done


def _main(evidence: Evidence, item: ComparisonResult) -> Main:
    sides, rows = evidence.sides(item), comparisons.comparison_rows(evidence.verdict)
    return Main(
        item=item,
        subtraction=formatting.subtraction(item),
        row=next(row for row in rows if row.name == item.name),
        sides=sides.names,
        quantity=_of_sides(evidence, item),
        seeds=comparisons.seed_rows(sides, evidence.study.seeds),
        looks=comparisons.look_rows(item),
        ahead=comparisons.ahead(item, sides.pairs, evidence.study.goal(item.metric)),
    )


def _of_sides(evidence: Evidence, item: ComparisonResult) -> str:
    if item.kind == "interaction":
        return f"difference in test {metric_table.readable(item.metric)}"
    return f"test {metric_table.directed(item.metric, evidence.study.goal(item.metric))}"


def _main_figures(evidence: Evidence, item: ComparisonResult, number: int) -> MainFigures:
    sides, goal = evidence.sides(item), evidence.study.goal(item.metric)
    differences = [a - b for a, b in sides.pairs.values()]
    bars = [
        main_figures.difference_bar(item, name=f"{size}-{number}", goal=goal, by_seed=differences, width=width)
        for size, width in (("narrow", main_figures.NARROW), ("wide", main_figures.WIDE))
    ]
    drawn = f"; the first {main_figures.MOST_LINES} are drawn" if len(differences) > main_figures.MOST_LINES else ""
    return MainFigures(
        narrow=bars[0],
        wide=bars[1],
        dots=0 < len(differences) <= main_figures.MOST_DOTS,
        pairs=main_figures.paired_seeds(sides, name=f"pairs-{number}", quantity=_of_sides(evidence, item)),
        looks=looks_plot.looks_path(item, name=f"looks-{number}"),
        drawn_seeds=drawn,
    )


def _curves(evidence: Evidence, key: str) -> list[main_figures.Curve]:
    return [
        main_figures.Curve(arm=arm, index=index, points=evidence.curve(arm, key))
        for index, arm in evidence.arms_with_runs()
    ]


def _curve_panel(evidence: Evidence, key: str) -> str:
    return main_figures.learning_curves(
        _curves(evidence, key),
        name=f"curves-{key}",
        quantity=metric_table.quantity(key),
        limits=ranges.range_of(key, evidence.study.task),
    )


def _no_curves(curves: Sequence[main_figures.Curve]) -> str:
    """Why there is no learning curve; empty where there is one."""
    most = max((len(curve.points) for curve in curves), default=0)
    if most > 1:
        return ""
    if most == 1:
        return "One epoch was trained: there is no curve. The scores after it are under"
    return "Missing: no epoch is recorded."


def _lower(evidence: Evidence) -> str:
    """The drawn metrics in which less is better, the training loss among them."""
    less = [name for name in metric_table.drawn(evidence.study) if evidence.study.goal(name) == "min"]
    return listed([metric_table.readable(name) for name in dict.fromkeys((*less, "loss"))])


def _curve_legend(evidence: Evidence, curves: Sequence[main_figures.Curve], others: Sequence[str] = ()) -> list[Legend]:
    """The arms, each with the seeds at its last epoch; `others`: drawn metrics that an arm may have instead."""
    rows = {row.name: row for row in tables.arm_rows(evidence.verdict)}
    legend = []
    for curve in curves:
        setting = f", {rows[curve.arm].setting}" if curve.arm in rows and any(evidence.study.every_setting()) else ""
        points = curve.points or next((found for key in others if (found := evidence.curve(curve.arm, key))), [])
        n = points[-1].n if points else 0
        legend.append(Legend(index=curve.index, text=f"{curve.arm}{setting}: n = {n} of {evidence.study.seeds} seeds"))
    return legend


def _reported_panels(rows: Sequence[ReportedRow]) -> list[ReportedPanel]:
    panels = []
    for number, metric in enumerate(dict.fromkeys(row.metric for row in rows)):
        quantity = metric_table.quantity(metric)
        same = [row for row in rows if row.metric == metric]
        svg = main_figures.reported_figures(same, name=f"reported-{number}", quantity=quantity)
        panels.append(ReportedPanel(quantity=quantity, svg=svg))
    return panels

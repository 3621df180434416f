"""Verdict, plan and status in the terminal: clear without colour, at most 80 columns, safe for any text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiebreak.plan.runs import Plan, PlannedArm
from tiebreak.report import formatting
from tiebreak.report.page import comparisons, provenance, tables
from tiebreak.study.registry import metric_label
from tiebreak.study.schema import Study
from tiebreak.text import listed, number_of, printable, rounded
from tiebreak.verdict.grid_edges import edge_sentences, wider_arms, wider_grid
from tiebreak.verdict.model import ArmResult, ComparisonResult, Verdict
from tiebreak.verdict.ranking import ranking_line
from tiebreak.verdict.sentences import more_seeds
from tiebreak.verdict.statistics import least_seeds

COLOURS = {"a": "bold green", "b": "bold green", "same": "bold cyan", "undecided": "bold yellow"}
WIDEST_SETTING = 13  # letters of a column, as in lr=0.0001234


def print_verdict(console: Console, verdict: Verdict, report: Path | None, folder: Path | None = None) -> None:
    """The answer, the arms, the comparisons, what is still needed, and last where the report lies.

    `folder` is the results folder where it has no report yet: the commands that are suggested name it.
    """
    folder = report.parent if report is not None else folder
    _say(console, verdict.question)
    console.print()
    _say(console, verdict.answer, COLOURS[verdict.primary.verdict])
    if verdict.cost:
        _say(console, verdict.cost)
    console.print()
    _print_arms(console, verdict)
    better = " (lower is better)" if verdict.metric.goal == "min" else ""
    what = f"{verdict.metric.split} {metric_label(verdict.metric.name)}{better}"
    _say(console, f"{what}; intervals: 95 %, of the mean over seeds", "dim")
    _print_differences(console, verdict.designs)
    console.print()
    _print_comparisons(console, verdict)
    if verdict.ranking:
        _say(console, ranking_line(verdict.ranking, verdict.seeds), "dim")
    if verdict.finished < verdict.planned:
        _say(console, f"not final: {verdict.finished} of {verdict.planned} planned runs ended", "yellow")
    for warning in verdict.warnings:
        _say(console, f"warning: {warning}", "yellow")
    _print_needed(console, verdict, folder)
    _print_edges(console, verdict, folder)
    if report is not None:
        console.print()
        console.print(Text(printable(f"report: {report}")), soft_wrap=True)


def _print_arms(console: Console, verdict: Verdict) -> None:
    """The table of arms; settings too wide for a column of it stand below, each with its arms."""
    rows = tables.arm_rows(verdict)
    wide = max((len(row.setting) for row in rows), default=0) > WIDEST_SETTING
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for name in ("arm",) if wide else ("arm", "setting"):
        table.add_column(name, overflow="fold")
    for name in ("score", "interval", "runs", "failed", "parameters", "per run"):
        table.add_column(name, justify="right", no_wrap=True)
    arms: dict[str, list[str]] = {}
    for row in rows:
        cells = (row.setting, row.mean, row.interval, row.runs, row.failed, row.parameters, row.seconds)
        table.add_row(Text(row.name, style="bold"), *(Text(printable(cell)) for cell in cells[wide:]))
        arms.setdefault(row.setting, []).append(row.name)
    console.print(table)
    for setting, chosen in arms.items() if wide else ():
        _say(console, f"at {setting}: {listed(chosen)}")


def _print_differences(console: Console, arms: Sequence[ArmResult | PlannedArm]) -> None:
    """In what each arm differs from the first."""
    for arm in arms:
        if arm.differences:
            apart = "; ".join(each.text for each in arm.differences)
            _say(console, f"{arm.name} against {arms[0].name}: {apart}", "dim")


def _print_comparisons(console: Console, verdict: Verdict) -> None:
    """Each on two lines, what was found and on what evidence; below a heading where several belong together."""
    for item, row in zip(verdict.comparisons, comparisons.comparison_rows(verdict), strict=True):
        if row.heading:
            _say(console, row.heading)
        indent = "  " if row.grouped else ""
        outcome = (printable(row.outcome), COLOURS[item.verdict])
        console.print(Text.assemble(f"{indent}{printable(row.label)}: ", outcome))
        interval = f", 95 % over {number_of(item.seeds, 'seed')}: {row.interval}" if item.low is not None else ""
        _say(console, f"{indent}  difference {row.difference}{interval}")
        if item.crossed_low is not None:
            _say(console, f"{indent}  over seeds and test examples together: {row.crossed}", "dim")
        if len(item.path) > 1:
            _say(console, f"{indent}  looks: {path_line(item)}", "dim")


def path_line(item: ComparisonResult) -> str:
    """The interval of a comparison at each look, in one line."""
    return "; ".join(f"{look.seeds} seeds {formatting.open_interval(look.low, look.high)}" for look in item.path)


def _print_needed(console: Console, verdict: Verdict, folder: Path | None) -> None:
    open_items = [item for item in verdict.comparisons if item.verdict == "undecided" and item.seeds_needed]
    if not open_items:
        return
    console.print()
    for item in (each for each in open_items if each.seeds):
        _say(console, f"{item.name}: needs {more_seeds(item, least_seeds(len(verdict.comparisons)))}")
    if (step := provenance.next_step(verdict, folder)) is None:
        return
    what, command = step
    _say(console, f"to {what}:", "dim")
    console.print(Text(printable(f"  {command}")), soft_wrap=True)


def _print_edges(console: Console, verdict: Verdict, folder: Path | None) -> None:
    """Arms that did best at an end of the grid, and how to widen it: a command, or values for the study file."""
    found = edge_sentences(verdict.designs)
    if not found:
        return
    console.print()
    for line in found:
        _say(console, line, "yellow")
    if grid := wider_grid(verdict.designs):
        _say(console, "to widen the grid (runs that are trained are kept):", "dim")
        command = provenance.run_command(verdict.study, folder, grid=grid)
        console.print(Text(printable(f"  {command}")), soft_wrap=True)
    else:
        _say(console, f"to widen the grids, edit your study file: {wider_arms(verdict.designs)}", "dim")


def print_plan(console: Console, study: Study, plan: Plan, looks: Sequence[int] = ()) -> None:
    """What would be trained, in what the arms differ and what is equal.

    `looks`: the seeds at each look of a study that takes seeds until it is decided; the plan is that of the first.
    """
    _say(console, study.question, "bold")
    held = plan.data.held or plan.data.sizes
    sizes = ", ".join(f"{formatting.count(size)} {split}" for split, size in held.items())
    sizes += f" {plan.data.unit}" if plan.data.held else ""
    if study.program is None:
        _say(console, f"data {plan.data.name} ({sizes or 'sizes unknown'}), protocol {study.protocol}")
    counts = sorted({len(study.settings(arm)) for arm in study.arms})
    settings = number_of(counts[0], "setting") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} settings"
    _say(console, f"{settings} x {number_of(study.seeds, 'seed')} for each arm, {len(plan.runs)} runs in all")
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("arm", overflow="fold")
    network = study.program is None  # of a program, only the number of runs is known
    if network:
        table.add_column("design", overflow="fold")
    for name in ("runs", "epochs", "parameters", "work") if network else ("runs",):
        table.add_column(name, justify="right", no_wrap=True)
    counted: dict[str, str] = {}  # identity -> the first arm that has the run
    for arm in plan.arms:
        shared = {counted[identity] for identity in arm.runs.values() if identity in counted}
        own = [identity for identity in arm.runs.values() if identity not in counted]
        counted |= dict.fromkeys(own, arm.name)
        epochs = max((plan.runs[identity].epochs for identity in arm.runs.values()), default=0)
        runs = str(len(own)) if own or not shared else f"of {listed(sorted(shared))}"
        cells = (arm.design, runs, str(epochs), formatting.count(arm.parameters), formatting.flops(arm.flops))
        table.add_row(
            Text(arm.name, style="bold"), *(Text(printable(cell)) for cell in (cells if network else (runs,)))
        )
    console.print(table)
    _print_differences(console, plan.arms)
    console.print()
    for term in plan.terms:
        state, style = (term.state, "") if term.equal else (term.state.replace("not", "NOT"), "yellow")
        _say(console, f"{state}: {term.name}: {term.value}", style)
    for warning in plan.warnings:
        _say(console, f"warning: {warning}", "yellow")
    if looks:
        kind = "looks" if len(looks) > 1 else "one look"
        _say(console, f"until decided: {kind} at {listed([str(each) for each in looks])} seeds")
    if len(looks) > 1:
        most = len(plan.runs) * looks[-1] // looks[0]
        many = f"at least {number_of(len(plan.runs), 'run')}, at most {most:,}"
        _say(console, f"{many}: at most {looks[-1] / looks[0]:.3g} times what is predicted for the first look")


@dataclass(frozen=True, kw_only=True)
class CohortRow:
    """Runs that can be trained as one computation: how many at once in a process, and the memory that these need."""

    name: str
    runs: int
    parameters: int
    at_once: int
    memory: float  # bytes
    cannot_fuse: str = ""
    run_by_run: str = ""  # what fused runs do one after the other
    cost: str = ""  # of not being fused
    seconds: float | None = None  # predicted for all its runs, over all processes


def print_cohorts(console: Console, rows: Sequence[CohortRow], memory: float) -> None:
    """Which runs can be trained as one computation, which cannot and why, and the memory of all processes in bytes."""
    timed = any(row.seconds is not None for row in rows)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("cohort", overflow="fold")
    for name in ("runs", "parameters", "at once", "memory", *(("time",) if timed else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = [str(row.runs), formatting.count(row.parameters), str(row.at_once), _size(row.memory)]
        cells += [formatting.duration(row.seconds)] if timed else []
        table.add_row(Text(printable(row.name), style="bold"), *map(Text, cells))
    console.print(table)
    if any(row.at_once > 1 for row in rows):
        _say(console, "at once: fused in one process; timed again when training begins", "dim")
    for row in rows:
        if row.cannot_fuse:
            text = f"{row.name}: its runs cannot be fused and are trained one after the other: {row.cannot_fuse}"
            _say(console, f"{text}; {row.cost}" if row.cost else text, "yellow")
        if row.run_by_run:
            text = f"{row.name}: fused, but these operations are done run by run, which gains nothing: {row.run_by_run}"
            _say(console, text, "yellow")
    _say(console, f"predicted memory: {_size(memory)}; what fits at once is checked before training", "bold")


def print_prediction(console: Console, seconds: float | None, how: str) -> None:
    """The predicted time of `tiebreak run`, and how it was estimated; or why it was not."""
    what = f"predicted time: {formatting.duration(seconds)}" if seconds is not None else "no predicted time"
    _say(console, what, "bold")
    _say(console, how, "dim")


def _size(count: float) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{rounded(count / 1e6)} MB" if count >= 1e5 else f"{rounded(count / 1e3)} kB"


def print_studies(console: Console, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """The built-in studies: name, question, data, time."""
    for number, (name, question, data, spent) in enumerate(rows):
        if number:
            console.print()
        console.print(Text.assemble((printable(name), "bold"), f"  {printable(question)}"))
        _say(console, f"  data {data}; {spent}" if spent else f"  data {data}", "dim")


def _say(console: Console, text: str, style: str = "") -> None:
    """One paragraph, printed as it is: no markup, no highlighting."""
    console.print(Text(printable(text), style=style))

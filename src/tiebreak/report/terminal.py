"""What the terminal shows: plain words that are clear without colour, at most 80 columns, safe for any text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column, Table
from rich.text import Text

from tiebreak.report import comparisons, provenance, tables, words
from tiebreak.results.verdict import Verdict
from tiebreak.runs import Plan
from tiebreak.study import Study

if TYPE_CHECKING:
    from tiebreak.results.record import Records

COLOURS = {"a": "bold green", "b": "bold green", "same": "bold cyan", "undecided": "bold yellow"}
LINE_SECONDS = 10.0  # without a terminal, a line at most this often
WIDEST_SETTING = 13  # letters of a column, as in lr=0.0001234
ROUNDING = 1e-6  # epochs: parts of epochs that were added up may miss the total by this


def print_verdict(console: Console, verdict: Verdict, report: Path | None) -> None:
    """The answer, the arms, the comparisons, what is still needed, and last where the report lies."""
    _say(console, verdict.question)
    console.print()
    _say(console, verdict.answer, COLOURS[verdict.primary.verdict])
    console.print()
    _print_arms(console, verdict)
    _say(console, f"{verdict.metric.split} {verdict.metric.name}; intervals: 95 %, of the mean over seeds", "dim")
    console.print()
    _print_comparisons(console, verdict)
    if verdict.finished < verdict.planned:
        _say(console, f"not complete: {verdict.finished} of {verdict.planned} planned runs finished", "yellow")
    for warning in verdict.warnings:
        _say(console, f"warning: {warning}", "yellow")
    _print_needed(console, verdict, report)
    if report is not None:
        console.print()
        console.print(Text(words.printable(f"report: {report}")), soft_wrap=True)


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
        table.add_row(Text(row.name, style="bold"), *(Text(words.printable(cell)) for cell in cells[wide:]))
        arms.setdefault(row.setting, []).append(row.name)
    console.print(table)
    for setting, chosen in arms.items() if wide else ():
        _say(console, f"at {setting}: {words.listed(chosen)}")


def _print_comparisons(console: Console, verdict: Verdict) -> None:
    """Each on two lines, what was found and on what evidence; below a heading where several belong together."""
    for item, row in zip(verdict.comparisons, comparisons.comparison_rows(verdict), strict=True):
        if row.heading:
            _say(console, row.heading)
        indent = "  " if row.grouped else ""
        outcome = (words.printable(row.outcome), COLOURS[item.verdict])
        console.print(Text.assemble(f"{indent}{words.printable(row.label)}: ", outcome))
        interval = f", 95 % over {words.number_of(item.seeds, 'seed')}: {row.interval}" if item.low is not None else ""
        _say(console, f"{indent}  difference {row.difference}{interval}")


def _print_needed(console: Console, verdict: Verdict, report: Path | None) -> None:
    open_items = [item for item in verdict.comparisons if item.verdict == "undecided" and item.seeds_needed]
    if not open_items:
        return
    console.print()
    for item in open_items:
        _say(console, f"{item.name}: needs about {words.number_of(item.seeds_needed or 0, 'more seed')}")
    first = provenance.to_settle(verdict)
    if first is None:
        return
    seeds = provenance.wanted_seeds(verdict, first)
    _say(console, f"to settle {first.name}:", "dim")
    command = provenance.run_command(verdict.study, report.parent if report else None, seeds)
    console.print(Text(words.printable(f"  {command}")), soft_wrap=True)


def print_plan(console: Console, study: Study, plan: Plan, predicted: Mapping[str, float] | None) -> None:
    """What would be trained. `predicted` holds training seconds by arm's name, shared runs counted once."""
    _say(console, study.question, "bold")
    sizes = ", ".join(f"{words.count(size)} {split}" for split, size in plan.data.sizes.items())
    _say(console, f"data {plan.data.name} ({sizes or 'sizes unknown'}), protocol {study.protocol}")
    settings = words.number_of(len(study.settings()), "setting")
    _say(console, f"{settings} x {words.number_of(study.seeds, 'seed')} for each arm, {len(plan.runs)} runs in all")
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("arm", overflow="fold")
    table.add_column("design", overflow="fold")
    for name in ("runs", "epochs", "parameters", "work", *(("predicted",) if predicted is not None else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for arm in plan.arms:
        epochs = max((plan.runs[identity].epochs for identity in arm.runs.values()), default=0)
        cells = [arm.design, str(len(arm.runs)), str(epochs), words.count(arm.parameters), words.work(arm.flops)]
        if predicted is not None:
            cells.append(words.duration(predicted[arm.name]) if arm.name in predicted else "unknown")
        table.add_row(Text(arm.name, style="bold"), *(Text(words.printable(cell)) for cell in cells))
    console.print(table)
    console.print()
    for term in plan.terms:
        equal, style = ("equal", "") if term.equal else ("NOT equal", "yellow")
        _say(console, f"{equal}: {term.name}: {term.value}", style)
    for warning in plan.warnings:
        _say(console, f"warning: {warning}", "yellow")
    if predicted is not None:
        _say(console, f"predicted training time: {words.duration(sum(predicted.values()))}", "bold")


def print_studies(console: Console, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """The built-in studies: name, question, data, time."""
    for number, (name, question, data, spent) in enumerate(rows):
        if number:
            console.print()
        console.print(Text.assemble((words.printable(name), "bold"), f"  {words.printable(question)}"))
        _say(console, f"  data {data}; {spent}" if spent else f"  data {data}", "dim")


def print_status(console: Console, plan: Plan, records: Records) -> None:
    """How far every arm is at every setting."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("arm", overflow="fold")
    table.add_column("setting", overflow="fold")
    for name in ("done", "diverged", "failed", "missing", "epochs"):
        table.add_column(name, justify="right", no_wrap=True)
    for arm in plan.arms:
        groups: dict[str, list[str]] = {}
        for key, identity in arm.runs.items():
            groups.setdefault(key.rpartition("/")[0], []).append(identity)
        for setting, identities in groups.items():
            table.add_row(Text(arm.name, style="bold"), Text(setting), *_progress(plan, records, identities))
    console.print(table)
    done = sum(records.runs[key].status == "done" for key in plan.runs if key in records.runs)
    _say(console, f"{done} of {words.number_of(len(plan.runs), 'run')} done")


def _progress(plan: Plan, records: Records, identities: list[str]) -> list[Text]:
    found = [records.runs[identity].status if identity in records.runs else "missing" for identity in identities]
    runs = [plan.runs[identity] for identity in identities]
    trained = sum(sum(epoch <= run.epochs for epoch in records.epochs.get(run.trajectory, {})) for run in runs)
    cells = [f"{found.count('done')} of {len(found)}"]
    cells += [str(found.count(status) or "-") for status in ("diverged", "failed", "missing")]
    return [Text(cell) for cell in (*cells, f"{trained} of {sum(run.epochs for run in runs)}")]


class _TimeLeft(ProgressColumn):
    """Time left from the average speed so far, in words."""

    def render(self, task: Task) -> Text:
        return Text(_left(task.completed, task.total or 0.0, task.elapsed or 0.0))


class TrainingProgress:
    """Shows how far training is: a live bar in a terminal, else a plain line every ten seconds and at the end."""

    def __init__(self, console: Console, total_epochs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._total, self._clock = console, max(total_epochs, 0), clock
        self._done, self._label = 0.0, ""
        self._started = self._printed = clock()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        """Start the clock and, in a terminal, the bar."""
        self._started = self._printed = self._clock()
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
                BarColumn(bar_width=20),
                TextColumn("{task.completed:.0f} of {task.total:.0f} epochs", markup=False),
                _TimeLeft(),
                console=self._console,
                expand=True,
                refresh_per_second=4,
            )
            self._bar.add_task("training", total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state on the screen."""
        if self._bar is not None:
            self._bar.stop()
        elif self._done:
            self._print_line()

    def advance(self, label: str, epochs: float) -> None:
        """So many epochs (over all runs) of what `label` names are done."""
        self._done, self._label = self._done + epochs, words.printable(label)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=self._label, completed=self._done)
        elif self._clock() - self._printed >= LINE_SECONDS:
            self._print_line()

    def note(self, text: str) -> None:
        """A line that stays."""
        _say(self._console, text)

    def _print_line(self) -> None:
        self._printed = self._clock()
        share = f" ({100 * self._done / self._total:.0f} %)" if self._total else ""
        left = _left(self._done, self._total, self._clock() - self._started)
        _say(self._console, f"{self._done:.0f} of {self._total} epochs{share}, {left}: {self._label}")


def _left(done: float, total: float, seconds: float) -> str:
    if done >= total - ROUNDING:
        return f"{words.duration(seconds)} in all"
    return f"about {words.duration(seconds * (total - done) / done)} left" if done > 0 else "starting"


def _say(console: Console, text: str, style: str = "") -> None:
    """One paragraph, printed as it is: no markup, no highlighting."""
    console.print(Text(words.printable(text), style=style))

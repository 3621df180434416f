"""`tiebreak cost`: what a part costs by formula, by counting and by the clock, and how that grows in a variable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak.errors import TiebreakError
from tiebreak.report.figures import cost_plot
from tiebreak.report.terminal import cost_table
from tiebreak.report.terminal.cost_table import NOTHING, PartCosts
from tiebreak.text import listed
from tiebreak.theory import fit, sweep
from tiebreak.theory.cost_rows import part_costs
from tiebreak.theory.family_sizes import without_formula
from tiebreak.theory.part_types import FormulaPart, Part
from tiebreak.theory.parts import PARTS, find_part
from tiebreak.theory.sweep import Point, Sweep

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """The command's options, as they were typed."""

    part: str | None = None
    vary: str | None = None
    against: str | None = None
    given: Sequence[str] = ()
    out: Path | None = None
    measured: bool = True


def show(console: Console, options: CostOptions) -> None:
    """Print everything that the command prints; with `out`, also write the plot to a file."""
    if options.part is None:
        if options.vary or options.against or options.given or options.out:
            raise TiebreakError("PART is missing; `tiebreak cost` alone lists all parts")
        _print_parts(console)
        return
    parts = [find_part(name) for name in (options.part, options.against) if name is not None]
    _check(parts, options)
    given = sweep.parse_given(options.given, parts)
    varied = sweep.parse_vary(options.vary, parts, given)
    sizes = [part.sizes({name: given[name] for name in part.variables if name in given}) for part in parts]
    curves, tables, notes = list[list[Point]](), list[PartCosts](), list[str]()
    if options.measured:
        for part, own in zip(parts, sizes, strict=True):
            sweep.check_fits(part, own, varied)
    with cost_table.working(console) as report, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for part, own in zip(parts, sizes, strict=True):
            points, ended = _points(part, own, varied, report if options.measured else None)
            notes += [ended] if ended else []
            curves.append(points)
            tables.append(part_costs(part, own, varied.variable, points))
    notes += dict.fromkeys(str(each.message) for each in caught)
    for table in tables:
        cost_table.print_costs(console, table)
    _print_curves(console, options, parts, varied.variable, curves)
    for note in notes:
        cost_table.say(console, f"note: {note}", "yellow")


def _check(parts: Sequence[Part], options: CostOptions) -> None:
    if options.out is not None:
        cost_plot.check_path(options.out)
    bare = [part.name for part in parts if not isinstance(part, FormulaPart)]
    if bare and not options.measured:
        verb = "has" if len(bare) == 1 else "have"
        raise TiebreakError(f"{listed(bare)} {verb} no formula, so --no-measure leaves nothing to show; leave it out")


def _points(
    part: Part, sizes: Mapping[str, int], varied: Sweep, report: sweep.Report | None
) -> tuple[list[Point], str | None]:
    """Measured, or by formula where there is nobody to report progress to."""
    if report is not None:
        return sweep.measure(part, sizes, varied, report)
    assert isinstance(part, FormulaPart)
    return sweep.by_formula(part, sizes, varied), None


def _print_curves(
    console: Console, options: CostOptions, parts: Sequence[Part], variable: str, curves: Sequence[Sequence[Point]]
) -> None:
    """The points as a table, the plot, and which part wins from where on."""
    _print_points(console, parts, variable, curves)
    series = [
        cost_plot.Series(
            name=part.name,
            xs=[point.x for point in points],
            ys=[point.seconds or 0.0 if options.measured else float(point.formula or 0) for point in points],
        )
        for part, points in zip(parts, curves, strict=True)
    ]
    crossing, sentence = _crossing(series, variable, options.measured) if len(series) > 1 else (None, "")
    plot = cost_plot.Plot(
        series=series,
        x_name=variable,
        y_name="time of a forward pass" if options.measured else "multiply-adds",
        y_format=cost_table.seconds if options.measured else cost_table.scaled,
        crossing=crossing,
    )
    for line in cost_plot.to_text(plot):
        console.print(line, no_wrap=True, overflow="crop")
    if sentence:
        console.print()
        cost_table.say(console, sentence, "bold")
    if options.out is not None:
        console.print(f"plot: {cost_plot.write(plot, options.out)}", markup=False, soft_wrap=True)


def _crossing(series: Sequence[cost_plot.Series], variable: str, measured: bool) -> tuple[float | None, str]:
    one, other = series
    both = min(len(one.xs), len(other.xs))
    found = fit.crossover(one.xs[:both], one.ys[:both], other.ys[:both])
    better = "is faster" if measured else "takes fewer multiply-adds"
    if found is None:
        winner = one.name if one.ys[both - 1] <= other.ys[both - 1] else other.name
        return None, f"no crossover in this range: {winner} {better} throughout"
    x, second = found
    times = fit.crossings(one.ys[:both], other.ys[:both])
    doubt = f"; but the curves cross {times} times, so measure again on a quieter machine" if times > 1 else ""
    return x, f"{other.name if second else one.name} {better} from {variable} ≈ {cost_plot.rounded(x)} on{doubt}"


def _print_points(console: Console, parts: Sequence[Part], variable: str, curves: Sequence[Sequence[Point]]) -> None:
    names = []
    for part in parts:
        first, *others = ("multiply-adds", "time", "memory")
        above = f"{part.name}\n" if len(parts) > 1 else ""
        names += [f"{above}{first}", *(f"{above and chr(10)}{name}" for name in others)]
    rows = []
    for number in range(max(map(len, curves))):
        row = [next(f"{points[number].x:,}" for points in curves if number < len(points))]
        for points in curves:
            point = points[number] if number < len(points) else None
            row += [NOTHING] * 3 if point is None else _cells(point)
        rows.append(row)
    cost_table.print_points(console, variable, names, rows)


def _cells(point: Point) -> list[str]:
    work = NOTHING if point.multiply_adds is None else cost_table.scaled(point.multiply_adds)
    if point.seconds is None or point.bytes is None:
        return [work, NOTHING, NOTHING]
    return [work, cost_table.seconds(point.seconds), cost_table.size(point.bytes)]


def _print_parts(console: Console) -> None:
    groups: dict[str, list[Part]] = {
        "layers and nets": [part for part in PARTS.values() if part.family is None],
        "designs with formulas": [part for part in PARTS.values() if part.family is not None],
        "other designs": list(without_formula(PARTS).values()),
    }
    cost_table.print_parts(
        console,
        [
            (title, [(part.name, part.line, ", ".join(part.variables)) for part in parts])
            for title, parts in groups.items()
            if parts
        ],
    )
    console.print()
    cost_table.say(console, "`tiebreak cost PART` shows what it costs; --vary L=256..4096 and --against OTHER compare")
    cost_table.say(console, "other designs have no formula: they are counted and measured")

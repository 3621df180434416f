"""`tiebreak cost`: what a part costs by formula, by counting and by the clock, and how that grows in a variable."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak.errors import TiebreakError
from tiebreak.report.figures import cost_plot
from tiebreak.report.terminal import cost_table
from tiebreak.report.terminal.cost_table import NOTHING, CostRow, PartCosts
from tiebreak.theory import fit, sweep
from tiebreak.theory.parts import PARTS, QUANTITIES, Part, find_part
from tiebreak.theory.sweep import Point

if TYPE_CHECKING:
    from rich.console import Console

NAMES = {
    "parameters": "parameters",
    "multiply_adds": "multiply-adds",
    "activations": "kept for gradient",
    "state": "streaming state",
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The command's options, as they were typed."""

    part: str | None = None
    vary: str | None = None
    against: str | None = None
    given: Sequence[str] = ()
    out: Path | None = None
    measured: bool = True


def show(console: Console, asked: Asked) -> None:
    """Everything that the command prints; with `out`, also the plot in a file."""
    if asked.part is None:
        if asked.vary or asked.against or asked.given or asked.out:
            raise TiebreakError("which PART? `tiebreak cost` alone lists them")
        _print_parts(console)
        return
    parts = [find_part(name) for name in (asked.part, asked.against) if name is not None]
    if asked.out is not None:
        cost_plot.check_path(asked.out)
    given = sweep.parse_given(asked.given, parts)
    varied = sweep.parse_vary(asked.vary, parts, given)
    sizes = [part.sizes({name: given[name] for name in part.variables if name in given}) for part in parts]
    curves, tables, notes = list[list[Point]](), list[PartCosts](), list[str]()
    if asked.measured:
        for part, own in zip(parts, sizes, strict=True):
            sweep.check_fits(part, own, varied)
    with cost_table.working(console) as tell, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for part, own in zip(parts, sizes, strict=True):
            if asked.measured:
                points, ended = sweep.measure(part, own, varied, tell)
                notes += [ended] if ended else []
            else:
                points = sweep.by_formula(part, own, varied)
            curves.append(points)
            tables.append(_costs(part, own, varied.variable, points, asked.measured))
    notes += dict.fromkeys(str(each.message) for each in caught)
    for table in tables:
        cost_table.print_costs(console, table)
    _print_curves(console, asked, parts, varied.variable, curves)
    for note in notes:
        cost_table.say(console, f"note: {note}", "yellow")


def _costs(part: Part, sizes: Mapping[str, int], variable: str, points: Sequence[Point], measured: bool) -> PartCosts:
    """The table of one part, at the point nearest to the default."""
    from tiebreak.theory import growth

    base = min(points, key=lambda point: abs(math.log(point.x / sizes[variable])))
    now = {**sizes, variable: base.x}
    counted = _counted(part, now, base) if measured else {}
    formulas, hidden = growth.without_rounding(*(getattr(part, name) for name in QUANTITIES))
    rows = []
    for name, formula in zip(QUANTITIES, formulas, strict=True):
        value = part.value(name, now)
        found = counted.get(name, NOTHING)
        all_values = [part.value(name, {**sizes, variable: point.x}) for point in points]
        rows.append(
            CostRow(
                name=NAMES[name],
                formula=growth.line(formula),
                growth=growth.order(getattr(part, name), variable, sizes),
                value=f"{value:,}",
                counted="the same" if found == value else f"{found:,}" if isinstance(found, int) else found,
                exponent=_exponent(points, all_values),
            )
        )
    if base.seconds is not None and base.bytes is not None:
        clock = "of a forward pass, one thread", cost_table.seconds(base.seconds), [p.seconds or 0.0 for p in points]
        most = "beyond inputs and parameters", cost_table.size(base.bytes), [float(p.bytes or 0) for p in points]
        for title, (what, shown, values) in (("time", clock), ("peak memory", most)):
            rows.append(CostRow(name=title, formula=what, value=shown, exponent=_exponent(points, values)))
    return PartCosts(
        name=part.name,
        line=part.line,
        sizes=[(name, each.meaning, now[name]) for name, each in part.variables.items()],
        at=f"{variable} = {base.x:,}",
        variable=variable,
        rows=rows,
        where=f"h = {growth.line(hidden)}" if hidden is not None else "",
    )


def _counted(part: Part, sizes: Mapping[str, int], base: Point) -> dict[str, int | str]:
    from tiebreak.cost import measure
    from tiebreak.theory import workloads

    workload = workloads.build(part.name, sizes)
    return {
        "parameters": measure.parameters(workload.network),
        "multiply_adds": "unknown" if base.counted is None else base.counted,
        "activations": workloads.kept_numbers(workload),
    }


def _exponent(points: Sequence[Point], values: Sequence[float]) -> str:
    if len(points) < 2 or min(values) <= 0:
        return NOTHING
    return cost_table.exponent(fit.fit_exponent([point.x for point in points], values))


def _print_curves(
    console: Console, asked: Asked, parts: Sequence[Part], variable: str, curves: Sequence[Sequence[Point]]
) -> None:
    """The points as a table, the plot, and which part wins from where on."""
    _print_points(console, parts, variable, curves)
    series = [
        cost_plot.Series(
            name=part.name,
            xs=[point.x for point in points],
            ys=[point.seconds or 0.0 if asked.measured else point.multiply_adds for point in points],
        )
        for part, points in zip(parts, curves, strict=True)
    ]
    crossing, sentence = _crossing(series, variable, asked.measured) if len(series) > 1 else (None, "")
    plot = cost_plot.Plot(
        series=series,
        x_name=variable,
        y_name="time of a forward pass" if asked.measured else "multiply-adds",
        y_format=cost_table.seconds if asked.measured else cost_table.scaled,
        crossing=crossing,
    )
    for line in cost_plot.to_text(plot):
        console.print(line, no_wrap=True, overflow="crop")
    if sentence:
        console.print()
        cost_table.say(console, sentence, "bold")
    if asked.out is not None:
        console.print(f"plot: {cost_plot.write(plot, asked.out)}", markup=False, soft_wrap=True)


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
    work = cost_table.scaled(point.multiply_adds if point.counted is None else point.counted)
    if point.seconds is None or point.bytes is None:
        return [work, NOTHING, NOTHING]
    return [work, cost_table.seconds(point.seconds), cost_table.size(point.bytes)]


def _print_parts(console: Console) -> None:
    groups = {title: [part for part in PARTS.values() if part.design == design] for title, design in
              (("layers and nets", False), ("designs", True))}  # fmt: skip
    cost_table.print_parts(
        console,
        [
            (title, [(part.name, part.line, ", ".join(part.variables)) for part in parts])
            for title, parts in groups.items()
        ],
    )
    console.print()
    cost_table.say(console, "`tiebreak cost PART` shows what it costs; --vary L=256..4096 and --against OTHER compare")

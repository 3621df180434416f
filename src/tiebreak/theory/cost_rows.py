"""The table of `tiebreak cost` for one part: each quantity by formula and counted, time, memory, and their growth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tiebreak.report.terminal import cost_table
from tiebreak.report.terminal.cost_table import NOTHING, CostRow, PartCosts
from tiebreak.theory import fit
from tiebreak.theory.part_types import QUANTITIES, FormulaPart, Part
from tiebreak.theory.sweep import Point

NAMES = {
    "parameters": "parameters",
    "multiply_adds": "multiply-adds",
    "activations": "kept for gradient",
    "state": "streaming state",
}
COUNTED = ("parameters", "multiply_adds", "activations")  # the quantities that a real network can be counted for


def part_costs(part: Part, sizes: Mapping[str, int], variable: str, points: Sequence[Point]) -> PartCosts:
    """The table of one part, at the point nearest to the default."""
    base = min(points, key=lambda point: abs(math.log(point.x / sizes[variable])))
    now = {**sizes, variable: base.x}
    if isinstance(part, FormulaPart):
        rows, where = _formula_rows(part, now, variable, base, points)
    else:
        rows, where = _counted_rows(base, points), f"{part.name} has no formula: it is counted and measured"
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
        where=where,
    )


def _formula_rows(
    part: FormulaPart, sizes: Mapping[str, int], variable: str, base: Point, points: Sequence[Point]
) -> tuple[list[CostRow], str]:
    """Each quantity by formula, compared with the count, and what the letter h stands for where it is used."""
    from tiebreak.theory import growth

    counted = dict(base.counted)
    if counted:
        from tiebreak.theory import workloads

        counted["activations"] = workloads.kept_numbers(workloads.build(part.name, sizes))
    formulas, hidden = growth.without_rounding(*(getattr(part, name) for name in QUANTITIES))
    rows = []
    for name, formula in zip(QUANTITIES, formulas, strict=True):
        value = part.value(name, sizes)
        values = [part.value(name, {**sizes, variable: point.x}) for point in points]
        rows.append(
            CostRow(
                name=NAMES[name],
                formula=growth.line(formula),
                growth=growth.order(getattr(part, name), variable, sizes),
                value=f"{value:,}",
                counted="the same" if counted.get(name) == value else _count(counted, name),
                exponent=_exponent(points, values),
            )
        )
    return rows, f"h = {growth.line(hidden)}" if hidden is not None else ""


def _counted_rows(base: Point, points: Sequence[Point]) -> list[CostRow]:
    """Each quantity as it was counted at every point."""
    rows = []
    for name in COUNTED:
        values = [point.counted[name] or 0 for point in points]
        rows.append(
            CostRow(
                name=NAMES[name],
                formula=NOTHING,
                value=NOTHING,
                counted=_count(base.counted, name),
                exponent=_exponent(points, values),
            )
        )
    return rows


def _count(counted: Mapping[str, int | None], name: str) -> str:
    if name not in counted:
        return NOTHING
    found = counted[name]
    return "unknown" if found is None else f"{found:,}"


def _exponent(points: Sequence[Point], values: Sequence[float]) -> str:
    if len(points) < 2 or min(values) <= 0:
        return NOTHING
    return cost_table.exponent(fit.fit_exponent([point.x for point in points], values))

from __future__ import annotations

import pytest

from tiebreak.report.terminal.cost_table import NOTHING
from tiebreak.theory.cost_rows import part_costs
from tiebreak.theory.part_types import Part, Variable
from tiebreak.theory.parts import PARTS
from tiebreak.theory.sweep import Point, Sweep, by_formula, measure

LONG = Sweep(variable="L", points=[8, 16, 32], explicit=True)


def test_by_formula_nothing_is_counted_and_there_is_no_clock() -> None:
    part = PARTS["attention"]
    sizes = part.sizes({"L": 16, "D": 4})
    found = part_costs(part, sizes, "L", by_formula(part, sizes, LONG))
    assert found.at == "L = 16"
    rows = {row.name: row for row in found.rows}
    assert set(rows) == {"parameters", "multiply-adds", "kept for gradient", "streaming state"}
    assert rows["multiply-adds"].value == f"{2 * 4 * 16 * 16:,}"
    assert rows["multiply-adds"].exponent.startswith("2.00")
    assert {row.counted for row in found.rows} == {NOTHING}
    assert found.where == ""


def test_what_was_counted_is_compared_with_the_formula() -> None:
    part = PARTS["attention"]
    sizes = part.sizes({"L": 16, "D": 4})
    points, _ = measure(part, sizes, LONG, lambda line: None)
    rows = {row.name: row for row in part_costs(part, sizes, "L", points).rows}
    assert {rows[name].counted for name in ("parameters", "multiply-adds", "kept for gradient")} == {"the same"}
    assert rows["time"].value
    wrong = [Point(x=p.x, formula=p.formula, counted={**p.counted, "multiply_adds": 7}) for p in points]
    rows = {row.name: row for row in part_costs(part, sizes, "L", wrong).rows}
    assert rows["multiply-adds"].counted == "7"


@pytest.mark.parametrize("work", [None, 100])
def test_without_a_formula_there_are_counts_and_their_growth(work: int | None) -> None:
    part = Part(name="mystery", line="", variables={"L": Variable("length", 8)}, vary="L", span=(8, 16), family="x")
    points = [
        Point(x=x, counted={"parameters": 5, "multiply_adds": work and work * x, "activations": x**2}) for x in (8, 16)
    ]
    found = part_costs(part, {"L": 8}, "L", points)
    assert "mystery has no formula" in found.where
    rows = {row.name: row for row in found.rows}
    assert {row.formula for row in found.rows} == {row.value for row in found.rows} == {NOTHING}
    assert (rows["parameters"].counted, rows["parameters"].exponent) == ("5", "0.00")
    assert rows["kept for gradient"].exponent == "2.00"
    expected = ("unknown", NOTHING) if work is None else ("800", "1.00")
    assert (rows["multiply-adds"].counted, rows["multiply-adds"].exponent) == expected

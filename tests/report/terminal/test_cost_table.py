from __future__ import annotations

import doctest
import io

from rich.console import Console

from tiebreak.report.terminal import cost_table
from tiebreak.report.terminal.cost_table import CostRow, PartCosts


def screen(terminal: bool = False) -> tuple[io.StringIO, Console]:
    file = io.StringIO()
    return file, Console(file=file, width=100, highlight=False, force_terminal=terminal)


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(cost_table).failed == 0


def test_numbers_for_people() -> None:
    assert [cost_table.seconds(value) for value in (0.9996e-3, 61.0, 1234.0)] == ["1 ms", "61 s", "1,234 s"]
    assert [cost_table.scaled(value) for value in (0, 999.7, 10**19)] == ["0", "1 k", "1e+04 P"]
    assert [cost_table.size(value) for value in (12, 4096)] == ["12 B", "4.1 kB"]


def test_a_part_is_shown_with_its_letters_formulas_and_counts() -> None:
    file, console = screen()
    rows = [
        CostRow(name="parameters", formula="4·D²", growth="O(1)", value="16.4 k", counted="16.4 k"),
        CostRow(name="time", formula="", value="1.2 ms", exponent="1.98 ± 0.03"),
    ]
    part = PartCosts(name="attention", line="soft\x07max", sizes=[("L", "length", 1024), ("D", "width", 64)],
                     at="L = 1,024", variable="L", rows=rows, where="n: runs")  # fmt: skip
    cost_table.print_costs(console, part)
    text = file.getvalue()
    assert "\x07" not in text
    for word in (
        "attention",
        "L = 1,024 (length)",
        "D = 64 (width)",
        "4·D²",
        "exponent in L",
        "1.98 ± 0.03",
        "n: runs",
    ):
        assert word in text
    (time,) = [line for line in text.splitlines() if line.startswith("time")]
    assert cost_table.NOTHING in time, "nothing was counted"


def test_parts_are_listed_by_group() -> None:
    file, console = screen()
    cost_table.print_parts(console, [("layers", [("conv", "a convolution", "K C")]), ("designs", [("mlp", "", "D")])])
    lines = file.getvalue().splitlines()
    assert [line.split()[0] if line.strip() else "" for line in lines] == ["layers", "conv", "", "designs", "mlp"]


def test_points_have_a_row_for_each_size() -> None:
    file, console = screen()
    cost_table.print_points(console, "L", ["one", "two"], [["256", "1 ms", "2 ms"], ["512", "4 ms", "4 ms"]])
    assert [line.split() for line in file.getvalue().splitlines() if line][1:] == [
        ["256", "1", "ms", "2", "ms"],
        ["512", "4", "ms", "4", "ms"],
    ]


def test_what_is_being_done_is_shown_in_a_terminal_only() -> None:
    file, console = screen()
    with cost_table.working(console) as show:
        show("counting")
    assert file.getvalue() == ""
    file, console = screen(terminal=True)
    with cost_table.working(console) as show:
        show("counting")
    assert file.getvalue()

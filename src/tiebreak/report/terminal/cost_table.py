"""What parts cost, as the terminal shows it: formulas beside counts and measurements, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiebreak.text import printable

NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One quantity of a part: its formula and big-O, its value, the count from the real module, its exponent."""

    name: str
    formula: str
    growth: str = ""
    value: str
    counted: str = NOTHING
    exponent: str = NOTHING


@dataclass(frozen=True, kw_only=True)
class PartCosts:
    """A part at one size."""

    name: str
    line: str
    sizes: Sequence[tuple[str, str, int]]  # variable, meaning, value
    at: str  # as L = 1,024
    variable: str
    rows: Sequence[CostRow]
    where: str = ""  # what a letter stands for


def print_parts(console: Console, groups: Sequence[tuple[str, Sequence[tuple[str, str, str]]]]) -> None:
    """Everything that has a formula: name, what it is, its variables."""
    for number, (title, rows) in enumerate(groups):
        if number:
            console.print()
        table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
        for name in (title, "", "variables"):
            table.add_column(name, overflow="fold")
        for name, line, variables in rows:
            table.add_row(Text(name, style="bold"), Text(line), Text(variables, style="dim"))
        console.print(table)


def print_costs(console: Console, part: PartCosts) -> None:
    """One part: what its letters mean, then the table."""
    console.print(Text.assemble((part.name, "bold"), f"  {printable(part.line)}"))
    letters = " · ".join(f"{name} = {value:,} ({meaning})" for name, meaning, value in part.sizes)
    console.print(Text(letters, style="dim"))
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("")
    table.add_column("formula", overflow="fold", ratio=1)
    table.add_column(f"in {part.variable}", no_wrap=True)
    for name in (f"at {part.at}", "counted", f"exponent in {part.variable}"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in part.rows:
        cells = (row.formula, row.growth, row.value, row.counted, row.exponent)
        table.add_row(Text(row.name, style="bold"), *map(Text, cells))
    console.print(table)
    if part.where:
        console.print(Text(part.where, style="dim"))
    console.print()


def print_points(console: Console, variable: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The points of the sweep: the size, then for each part its multiply-adds, time and memory."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column(variable, justify="right", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


def say(console: Console, text: str, style: str = "") -> None:
    """A sentence, printed as it is."""
    console.print(Text(printable(text), style=style))


@contextmanager
def working(console: Console) -> Iterator[Callable[[str], None]]:
    """A status line that names the current step: in a terminal only, and removed at the end."""
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(text))


def exponent(fitted: tuple[float, float, float] | None) -> str:
    """An exponent with half its interval.

    >>> exponent((1.98, 1.95, 2.01)), exponent((1.98, math.nan, math.nan)), exponent(None)
    ('1.98 ± 0.03', '1.98', '–')
    """
    if fitted is None:
        return NOTHING
    value, low, high = fitted
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} ± {(high - low) / 2:.2f}"


def seconds(value: float) -> str:
    """A time of any size, two or three digits of it.

    >>> seconds(0.0000123), seconds(0.00456), seconds(1.5)
    ('12.3 µs', '4.56 ms', '1.5 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size or unit == "µs":
            return f"{value / size:.3g} {unit}" if value / size < 999.5 else f"{value / size:,.0f} {unit}"
    raise AssertionError


def scaled(value: float, units: str = " kMGTP") -> str:
    """A large number, three digits and a unit of a thousand.

    >>> scaled(134217728), scaled(999)
    ('134 M', '999')
    """
    place = 0
    while value >= 999.5 and place < len(units) - 1:
        value, place = value / 1000, place + 1
    return f"{value:.3g} {units[place]}".rstrip()


def size(count: float) -> str:
    """Bytes.

    >>> size(1_500_000), size(0)
    ('1.5 MB', '0 B')
    """
    text = scaled(count)
    return f"{text}B" if text[-1].isalpha() else f"{text} B"

"""Curves on logarithmic axes: as characters for a terminal, and as a figure in an SVG or PNG file."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.text import Text

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.report.figures import drawing

WIDTH, HEIGHT, LABELS = 60, 16, 9  # of the plot in characters, and of what stands left of it
MARKS, STYLES = ("●", "○"), ("bold cyan", "bold yellow")
KINDS = (".svg", ".png")
GRID, EDGE = "#d8d8d8", "#808080"

Format = Callable[[float], str]


@dataclass(frozen=True, kw_only=True)
class Series:
    """One curve: positive numbers."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Curves with what their axes say, and where they cross."""

    series: Sequence[Series]
    x_name: str
    y_name: str
    y_format: Format
    crossing: float | None = None


def check_path(path: Path) -> None:
    """Refuse a file whose kind cannot be written, before any work is done."""
    if path.suffix.lower() not in KINDS:
        raise TiebreakError(f"--out {path}: should end in .svg or .png")


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis of so many characters."""

    low: float
    high: float
    cells: int

    def place(self, value: float) -> int:
        return round((self.cells - 1) * self.share(value))

    def share(self, value: float) -> float:
        return math.log(value / self.low) / math.log(self.high / self.low)


def to_text(plot: Plot) -> list[Text]:
    """The plot in lines of at most 70 characters: a mark for each point, dots between them, a legend."""
    xs, ys = [x for each in plot.series for x in each.xs], [y for each in plot.series for y in each.ys]
    top = max(ys) if max(ys) > min(ys) else 2 * min(ys)
    across, up = _Axis(min(xs), max(xs), WIDTH), _Axis(min(ys), top, HEIGHT)
    canvas: list[list[tuple[str, str]]] = [[(" ", "")] * WIDTH for _ in range(HEIGHT)]
    for each in plot.series:
        for (x, y), (next_x, next_y) in pairwise(zip(each.xs, each.ys, strict=True)):
            _draw_line(canvas, (across.place(x), up.share(y)), (across.place(next_x), up.share(next_y)))
    for number, each in reversed(list(enumerate(plot.series))):  # the first on top
        for x, y in zip(each.xs, each.ys, strict=True):
            canvas[HEIGHT - 1 - up.place(y)][across.place(x)] = (MARKS[number % 2], STYLES[number % 2])
    labels = _row_labels(plot, up)
    lines = [Text(f"{plot.y_name}", style="dim")]
    for row, cells in enumerate(canvas):
        edge = f"{labels.get(row, ''):>{LABELS}} {'┤' if row in labels else '│'}"
        lines.append(Text.assemble((edge, "dim"), *cells))
    lines.append(Text(f"{'':{LABELS}} └{'─' * WIDTH}", style="dim"))
    lines.append(Text(f"{'':{LABELS}}  {_column_labels(sorted(set(xs)), across)}", style="dim"))
    legend = [
        part
        for number, each in enumerate(plot.series)
        for part in ((MARKS[number % 2], STYLES[number % 2]), f" {each.name}   ")
    ]
    return [*lines, Text.assemble(f"{'':{LABELS}}  {plot.x_name}    ", *legend)]


def _draw_line(canvas: list[list[tuple[str, str]]], start: tuple[int, float], end: tuple[int, float]) -> None:
    for column in range(start[0] + 1, end[0]):
        share = start[1] + (end[1] - start[1]) * (column - start[0]) / (end[0] - start[0])
        canvas[HEIGHT - 1 - round((HEIGHT - 1) * share)][column] = ("·", "dim")


def _row_labels(plot: Plot, up: _Axis) -> dict[int, str]:
    """Powers of ten where there are two or more of them in sight, else both ends."""
    powers = [10.0**n for n in range(math.ceil(math.log10(up.low)), math.floor(math.log10(up.high)) + 1)]
    step = -(-len(powers) // 6)
    shown = powers[::step] if len(powers) > 1 else [up.low, up.high]
    return {HEIGHT - 1 - up.place(value): plot.y_format(value) for value in shown}


def _column_labels(values: Sequence[float], across: _Axis) -> str:
    """Every value under its place; where there is no room, some are left out."""
    line = ""
    for value in values:
        text = f"{value:,.0f}"
        place = min(max(across.place(value) - len(text) // 2, 0), WIDTH - len(text) + 4)
        if not line or place > len(line):
            line = line.ljust(place) + text
    return line


def write(plot: Plot, path: Path) -> Path:
    """The plot as a figure, readable on its own on a white page."""
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    buffer = io.BytesIO()
    with drawing.style():
        figure, axes = drawing.sheet(640, 420, drawing.Margins(left=84, right=24, top=40, bottom=52))
        figure.set_facecolor("white")
        for number, each in enumerate(plot.series):
            axes.loglog(each.xs, each.ys, color=drawing.colour(number), marker=drawing.marker(number), linewidth=2,
                        markersize=6, label=each.name)  # fmt: skip
        if plot.crossing is not None:
            axes.axvline(plot.crossing, color=EDGE, linewidth=1, linestyle=(0, (4, 4)))
            axes.annotate(f"{plot.x_name} ≈ {rounded(plot.crossing)}", (plot.crossing, 0.03), fontsize=drawing.SMALL,
                          xycoords=("data", "axes fraction"), xytext=(6, 0), textcoords="offset points")  # fmt: skip
        ticks = sorted({x for each in plot.series for x in each.xs})
        axes.set_xticks(ticks[:: -(-len(ticks) // 9)])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plot.y_format(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(which="minor", length=0)
        axes.grid(color=GRID)
        for spine in axes.spines.values():
            spine.set_color(EDGE)
        axes.set_xlabel(plot.x_name)
        axes.set_title(plot.y_name, loc="left", fontsize=drawing.TEXT)
        axes.legend(frameon=False, loc="best")
        figure.savefig(buffer, format=path.suffix.lower()[1:], dpi=144, metadata=_metadata(path))
    return files.write(path, buffer.getvalue())


def _metadata(path: Path) -> dict[str, str | None]:
    return {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}


def rounded(value: float) -> str:
    """A size where curves cross, two digits of it.

    >>> rounded(5834.2)
    '5,800'
    """
    return f"{float(f'{value:.2g}'):,.0f}"

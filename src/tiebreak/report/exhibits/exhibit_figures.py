"""The figures of exhibits: accuracy on moved images, and confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tiebreak.report import formatting
from tiebreak.report.evidence import Point
from tiebreak.report.exhibits.confusion import Confusion
from tiebreak.report.exhibits.prepared import Line, Move
from tiebreak.report.figures import drawing, small_multiples
from tiebreak.report.figures.drawing import INK, SMALL, Margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = (300, 232)  # px: three of them stand side by side on a page
MATRIX, LEAST_CELL, LARGEST_CELL = 258, 14, 44  # px
MOST_TICKS = 9
NUMBERED = 10  # classes up to here have numbers in their cells
NAMED = 24  # and up to here names at the axes
LONGEST_NAME = 12  # letters
RIGHT, WRONG = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)  # blue on the diagonal, orange off it


def limits(moves: Sequence[Move]) -> tuple[float, float]:
    """One range of accuracies for all the panels, so that they can be compared."""
    return drawing.window(
        [end for move in moves for line in move.lines for p in line.points for end in (p.low, p.high)], 0.04
    )


def robustness_panel(move: Move, *, within: tuple[float, float]) -> str:
    """Accuracy against the amount of one kind of move."""
    amounts = sorted({each.x for line in move.lines for each in line.points})
    return curve_panel(
        move.lines,
        name=f"robustness-{move.kind}",
        axes=(move.quantity, "test accuracy"),
        within=(max(within[0], -0.02), min(within[1], 1.02)),
        ticks=amounts[:: -(-len(amounts) // MOST_TICKS)],
    )


def curve_panel(
    lines: Sequence[Line],
    *,
    name: str,
    axes: tuple[str, str],
    within: tuple[float, float],
    ticks: Sequence[float] = (),
) -> str:
    """A line per arm: means over seeds, 95 % t intervals as bands. `axes` are named x, y; `ticks` stand at x."""
    from matplotlib.ticker import MaxNLocator

    label = f"{axes[1][:1].upper()}{axes[1][1:]} by {axes[0]}. " + "; ".join(
        f"{line.arm}: {', '.join(f'{formatting.score(each.mean)} at {each.x:g}' for each in _ends(line.points))}"
        for line in lines
    )
    if len(lines) > small_multiples.MOST_TOGETHER:
        return small_multiples.small_multiples(lines, name=name, names=axes, within=within, label=f"{label}.")
    with drawing.style():
        figure, place = drawing.sheet(*PANEL, Margins(left=52, right=8, top=8))
        for line in lines:
            small_multiples.draw_line(place, line, line.points)
        place.set_ylim(*within)
        if ticks:
            place.set_xticks(ticks, [formatting.true_minus(f"{tick:g}") for tick in ticks])
        else:
            place.xaxis.set_major_locator(MaxNLocator(nbins=7))
        place.yaxis.set_major_locator(MaxNLocator(nbins=6))
        place.grid(axis="y")
        place.set_xlabel(drawing.fit(axes[0], PANEL[0] - 60))
        place.set_ylabel(drawing.fit(axes[1], PANEL[1] - 30))
        return drawing.to_svg(figure, name=name, label=f"{label}.")


def _ends(points: Sequence[Point]) -> Sequence[Point]:
    return [points[0], points[-1]] if len(points) > 1 else points


def confusion_matrix(item: Confusion, *, name: str, largest: float) -> str:
    """Rows: the true class; columns: the answer. `largest` is the share off the diagonal that is shaded darkest."""
    classes = len(item.names)
    labels = [_short(label) for label in item.names] if classes <= NAMED else []
    cell = min(LARGEST_CELL, max(LEAST_CELL, MATRIX / classes)) if classes <= NAMED else MATRIX / classes
    room = round(max((len(label) for label in labels), default=4) * drawing.LETTER)
    upright = room > cell
    margins = Margins(left=room + 30, right=8, top=4, bottom=(room if upright else 12) + 30)
    side = round(cell * classes)
    with drawing.style():
        width, height = side + margins.left + margins.right, side + margins.top + margins.bottom
        figure, axes = drawing.sheet(width, height, margins)
        axes.imshow(_shades(item.shares, largest), interpolation="none", aspect="auto")
        for border in axes.spines.values():
            border.set_visible(True)
        if labels:
            axes.set_xticks(range(classes), labels, rotation=90 if upright else 0)
            axes.set_yticks(range(classes), labels)
        if classes <= NUMBERED:
            _numbers(axes, item.shares)
        axes.set_xlabel("answer")
        axes.set_ylabel("true class")
        often = "; ".join(item.most_frequent()) or "no confusion"
        return drawing.to_svg(figure, name=name, label=f"Confusions of {item.arm} over {item.seeds} seeds: {often}.")


def _short(label: str) -> str:
    """A class's name, cut in the middle: names often differ in their last letters."""
    half = LONGEST_NAME // 2
    return label if len(label) <= LONGEST_NAME else f"{label[: half - 1]}…{label[-half:]}"


def _shades(shares: npt.NDArray[np.float64], largest: float) -> npt.NDArray[np.float64]:
    """Colours [C, C, 4]: the share as opacity, so that they suit a light and a dark page."""
    diagonal = np.eye(len(shares), dtype=bool)
    shades = np.zeros((*shares.shape, 4))
    shades[..., :3] = np.where(diagonal[..., None], RIGHT, WRONG)
    shades[..., :3] /= 255
    off = np.where(shares > 0, 0.08 + 0.6 * shares / (largest or 1.0), 0.0)
    shades[..., 3] = np.where(diagonal, 0.08 + 0.3 * shares, np.minimum(off, 0.68))
    return shades


def _numbers(axes: Axes, shares: npt.NDArray[np.float64]) -> None:
    """Per cent in every cell that is not empty."""
    for (row, column), value in np.ndenumerate(shares):
        if value > 0:
            shown = formatting.per_cent(float(value))
            weight = "bold" if row == column else "normal"
            axes.text(column, row, shown, ha="center", va="center", fontsize=SMALL, fontweight=weight, color=INK)

"""Many curves with bands: one small panel for each arm, the other arms (if few) as thin grey lines behind it.

A few curves share one panel. More than `MOST_TOGETHER` bands hide each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tiebreak.report.evidence import Point
from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import MUTED, RULE, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TOGETHER = 4
COLUMNS = 2
WIDTH, PANEL_HEIGHT = 358, 104  # px
LEFT, RIGHT, TITLE, BOTTOM, GAP = 44, 8, 20, 40, 14  # px
MOST_MARKED = 30  # points of a line
MOST_BEHIND = 16  # arms whose curves stand behind each panel: more are a grey surface, and slow to draw


class Line(Protocol):
    """An arm's points."""

    @property
    def arm(self) -> str:
        """Its name."""

    @property
    def index(self) -> int:
        """Its place in the study, which decides its colour."""

    @property
    def points(self) -> Sequence[Point]:
        """Means with their intervals, by x."""


def draw_line(axes: Axes, line: Line, points: Sequence[Point]) -> None:
    """An arm's means with the band of their intervals."""
    x, colour = [each.x for each in points], drawing.colour(line.index)
    axes.fill_between(
        x, [each.low for each in points], [each.high for each in points], color=colour, alpha=0.2, linewidth=0
    )
    marker = drawing.marker(line.index) if len(x) <= MOST_MARKED else "None"
    axes.plot(x, [each.mean for each in points], color=colour, linewidth=2, marker=marker, markersize=5)


def small_multiples(
    lines: Sequence[Line], *, name: str, names: tuple[str, str], within: tuple[float, float], label: str
) -> str:
    """A panel for each arm, all with the same axes; `names` are those of x and y, `within` the range of y."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = -(-len(lines) // COLUMNS)
    height = rows * (PANEL_HEIGHT + TITLE) + BOTTOM + 18
    each = (WIDTH - LEFT - RIGHT - GAP * (COLUMNS - 1)) / COLUMNS
    xs = [point.x for line in lines for point in line.points]
    with drawing.style():
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        for place, line in enumerate(lines):
            row, column = divmod(place, COLUMNS)
            low = height - 18 - (row + 1) * (PANEL_HEIGHT + TITLE)
            box = (LEFT + column * (each + GAP), low, each, PANEL_HEIGHT)
            axes = figure.add_axes((box[0] / WIDTH, box[1] / height, box[2] / WIDTH, box[3] / height))
            for other in lines if len(lines) <= MOST_BEHIND else ():
                if other is not line:
                    axes.plot([p.x for p in other.points], [p.mean for p in other.points], color=MUTED, alpha=0.45,
                              linewidth=0.8)  # fmt: skip
            draw_line(axes, line, line.points)
            axes.set_xlim(*drawing.window(xs, 0.04))
            axes.set_ylim(*within)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=all(x == int(x) for x in xs)))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
            axes.grid(axis="y", color=RULE)
            axes.set_title(drawing.fit(line.arm, each), fontsize=SMALL, loc="left", pad=4)
            if column:
                axes.tick_params(labelleft=False)
            if place + COLUMNS < len(lines):
                axes.tick_params(labelbottom=False)
        figure.text(0, 1 - 11 / height, drawing.fit(names[1], WIDTH), fontsize=SMALL, va="center")
        figure.text(0.5, 8 / height, drawing.fit(names[0], WIDTH), fontsize=SMALL, ha="center", va="center")
        return drawing.to_svg(figure, name=name, label=label)

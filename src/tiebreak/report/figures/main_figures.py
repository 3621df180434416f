"""The figures of a report, each an inline SVG of a phone's width (the first also of a page's width).

A figure without data is an empty string: the page then says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tiebreak.report import formatting
from tiebreak.report.evidence import Point, Sides
from tiebreak.report.figures import drawing, small_multiples
from tiebreak.report.figures.drawing import INK, MUTED, PAPER, RULE, SMALL, Margins
from tiebreak.report.page.tables import ReportedRow, SettingRow
from tiebreak.study.registry import Goal, metric_label
from tiebreak.verdict import ranges, statistics
from tiebreak.verdict.model import ComparisonResult

NARROW, WIDE = 358, 680  # px: a phone without its margins, a page
CURVES = (300, 220)  # px: three of them side by side
MOST_DOTS = 400  # more seeds than that are not drawn one by one
MOST_LINES = 100
MOST_POINTS = 150
CLEARED = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}  # no grid lines behind a text


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One arm's learning curve."""

    arm: str
    index: int
    points: Sequence[Point]


def difference_bar(
    item: ComparisonResult, *, name: str, goal: Goal, by_seed: Sequence[float] = (), width: int = NARROW
) -> str:
    """A difference with its interval, the zero line and the margin; a dot for each seed."""
    from matplotlib.ticker import MaxNLocator

    if item.difference is None:
        return ""
    low, high = _ends(item.difference, item.low, item.high)
    dots = list(by_seed) if len(by_seed) <= MOST_DOTS else []
    left, right, below = _directions(item, goal, width)
    with drawing.style():
        bottom = 44 + 16 * below.count("\n")
        figure, axes = drawing.sheet(width, 114 + bottom, Margins(left=8, right=8, top=26, bottom=bottom))
        axes.axvspan(-item.margin, item.margin, color=RULE, linewidth=0)
        axes.axvline(0, color=INK, linewidth=1)
        axes.plot([low, high], [1, 1], color=INK, linewidth=5, solid_capstyle="butt")
        axes.plot([item.difference], [1], "D", color=PAPER, markeredgecolor=INK, markeredgewidth=2, markersize=9)
        axes.plot(dots, [0.42 + 0.12 * (i % 2) for i in range(len(dots))], "o", color=MUTED, alpha=0.7, markersize=4.5)
        axes.text(item.difference, 1.24, formatting.signed_minus(item.difference), ha="center", fontweight="bold",
                  bbox=CLEARED)  # fmt: skip
        axes.text(0, 1.05, left, transform=axes.transAxes, ha="left")
        axes.text(1, 1.05, right, transform=axes.transAxes, ha="right")
        axes.set_ylim(0.2, 1.62)
        axes.set_xlim(*drawing.window([low, high, -item.margin, item.margin, *dots], 0.12))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=width // 75))
        axes.set_xlabel(below)
        label = (
            f"Difference in {metric_label(item.metric)}, {formatting.subtraction(item)}: "
            f"{formatting.signed(item.difference)}, interval {formatting.open_interval(item.low, item.high)}; "
            f"margin {item.margin:g}."
        )
        return drawing.to_svg(figure, name=name, label=label)


def _directions(item: ComparisonResult, goal: Goal, width: int) -> tuple[str, str, str]:
    """What lies left and right of zero (the lesser value wins where the goal is `min`), and the name of the axis."""
    room, whole = width / 2 - 90, width - 16  # for a name, for a line
    a, b = item.side_names
    if item.kind == "interaction":
        left, right = ("smaller", "larger") if goal == "max" else ("larger", "smaller")
        parts = [drawing.fit(f"({a})", whole), drawing.fit(f"− ({b})", whole)]
        joined = f"difference in {metric_label(item.metric)}: {' '.join(parts)}"
        below = joined if len(joined) * drawing.LETTER <= whole else "\n".join(parts)
        return f"← advantage {left}", f"advantage {right} →", below
    left, right = (b, a) if goal == "max" else (a, b)
    metric = drawing.fit(metric_label(item.metric), 140)
    half = (whole - drawing.LETTER * len(f"difference in {metric}: − ")) / 2
    below = f"difference in {metric}: {drawing.fit(a, half)} − {drawing.fit(b, half)}"
    return f"← {drawing.fit(left, room)} better", f"{drawing.fit(right, room)} better →", below


def learning_curves(
    curves: Sequence[Curve], *, name: str, quantity: str, limits: ranges.Range = ranges.ANYTHING
) -> str:
    """Means over seeds per epoch, with the 95 % t interval of the mean as a band; nothing below two epochs.

    Up to four arms share one panel; more of them get a panel each.
    """
    from matplotlib.ticker import MaxNLocator

    drawn = [replace(curve, points=_thinned(curve.points)) for curve in curves if curve.points]
    if not drawn or max(len(curve.points) for curve in drawn) < 2:
        return ""
    ends = "; ".join(f"{curve.arm} {formatting.score(curve.points[-1].mean)}" for curve in drawn)
    label = f"{quantity} per epoch, mean over seeds. At the end: {ends}."
    within = readable_window([point for curve in drawn for point in curve.points], limits)
    if len(drawn) > small_multiples.MOST_TOGETHER:
        return small_multiples.small_multiples(drawn, name=name, names=("epoch", quantity), within=within, label=label)
    with drawing.style():
        figure, axes = drawing.sheet(*CURVES, Margins(left=52, right=8, top=10))
        for curve in drawn:
            small_multiples.draw_line(axes, curve, curve.points)
        axes.set_ylim(*within)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
        axes.grid(axis="y")
        axes.set_xlabel("epoch")
        axes.set_ylabel(drawing.fit(quantity, CURVES[1] - 30))
        return drawing.to_svg(figure, name=name, label=label)


def readable_window(points: Sequence[Point], limits: ranges.Range = ranges.ANYTHING) -> tuple[float, float]:
    """The range of an axis: all the means, and the intervals unless these are so wide that the means would be one line.

    It ends just beyond the values that the quantity can take.
    """
    low, high = drawing.window([point.mean for point in points], 0.75)
    all_low, all_high = drawing.window([end for point in points for end in (point.mean, point.low, point.high)], 0.05)
    low, high = max(low, all_low), min(high, all_high)
    room = 0.03 * (high - low)
    return max(low, limits[0] - room), min(high, limits[1] + room)


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    """At most one point every two pixels or so, the last one always."""
    step = -(-len(points) // MOST_POINTS)
    return points if step <= 1 else [*points[:-1][::step], points[-1]]


def setting_grid(rows: Sequence[SettingRow], *, quantity: str) -> str:
    """Validation score of each arm at each setting: a small dot for each seed, a large marker for the mean."""
    if not any(row.scores for row in rows):
        return ""
    places, headings = _places(rows)
    height = round(22 * (max(places) + 1)) + 70
    with drawing.style():
        figure, axes = drawing.sheet(NARROW, height, Margins(left=8, right=100, top=8))
        dots = sum(len(row.scores) for row in rows) <= MOST_DOTS
        for row, y in zip(rows, places, strict=True):
            colour = drawing.colour(row.index)
            if dots:
                axes.plot(row.scores, [y + 0.36] * len(row.scores), "o", color=colour, alpha=0.6, markersize=3)
            if row.mean is not None:
                face, marker = colour if row.chosen else PAPER, drawing.marker(row.index)
                axes.plot(row.mean, y, marker, color=face, markeredgecolor=colour, markeredgewidth=2, markersize=8)
            shown = f"{row.mean_text}, n={len(row.scores)}" if row.scores else formatting.MISSING
            weight = "bold" if row.chosen else "normal"
            axes.annotate(shown, (1, y), xycoords=("axes fraction", "data"), xytext=(10, 0), va="center",
                          textcoords="offset points", fontsize=SMALL, fontweight=weight)  # fmt: skip
        for heading, y in headings.items() if len(headings) > 1 else ():
            axes.annotate(
                drawing.fit(heading, 240), (0, y), xycoords=("axes fraction", "data"), va="center", bbox=CLEARED
            )
        axes.set_ylim(max(places) + 0.9, -1.2 if len(headings) > 1 else -0.1)
        axes.set_xlim(*drawing.window([score for row in rows for score in row.scores], 0.05))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel(drawing.fit(quantity, 250))
        chosen = ", ".join(f"{row.arm} {row.setting} {row.mean_text}" for row in rows if row.chosen)
        title = "by arm" if all(row.chosen for row in rows) else "by arm and setting. Chosen"
        return drawing.to_svg(figure, name="settings", label=f"{quantity} {title}: {chosen}.")


def _places(rows: Sequence[SettingRow]) -> tuple[list[float], dict[str, float]]:
    """Where each row stands, and the heading of each setting above its rows."""
    places: list[float] = []
    headings: dict[str, float] = {}
    y = -1.0
    for row in rows:
        if row.setting not in headings:
            headings[row.setting] = y + (1.0 if not headings else 1.4)
            y = headings[row.setting]
        y += 1
        places.append(y)
    return places, headings


def paired_seeds(sides: Sides, *, name: str, quantity: str) -> str:
    """One line for each seed joins its two scores; the markers at the sides are the means with 95 % t intervals."""
    from matplotlib.ticker import MaxNLocator

    pairs = sides.pairs
    if not pairs:
        return ""
    with drawing.style():
        figure, axes = drawing.sheet(NARROW, 280, Margins(left=56, right=14, top=14, bottom=34))
        drawn = list(pairs.values())[:MOST_LINES]
        for pair in drawn:
            axes.plot([0, 1], pair, color=MUTED, linewidth=1.2, alpha=0.7, zorder=1)
        for side, place, index, limits in zip((0, 1), (-0.16, 1.16), sides.places, sides.limits, strict=True):
            values = [pair[side] for pair in drawn]
            axes.plot([side] * len(values), values, drawing.marker(index), color=drawing.colour(index), markersize=5)
            found = statistics.estimate([pair[side] for pair in pairs.values()])
            mean = found.mean if found.mean is not None else 0.0
            ends = _ends(mean, *(ranges.cut(end, limits) for end in (found.low, found.high)))
            axes.plot([place, place], ends, color=drawing.colour(index), linewidth=4)
            axes.plot(place, mean, drawing.marker(index), color=PAPER, markeredgecolor=drawing.colour(index),
                      markeredgewidth=2, markersize=9)  # fmt: skip
        axes.set_xticks([0, 1], [drawing.fit(name, 140) for name in sides.names], fontsize=drawing.TEXT)
        axes.set_xlim(-0.45, 1.45)
        low, high = axes.get_ylim()
        room = 0.04 * (high - low)  # for a marker at the end of what the metric can be
        axes.set_ylim(
            max(low, min(end for end, _ in sides.limits) - room), min(high, max(end for _, end in sides.limits) + room)
        )
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
        axes.grid(axis="y")
        axes.set_ylabel(drawing.fit(quantity, 220))
        above = sum(a > b for a, b in pairs.values())
        label = f"{quantity} by seed: {sides.names[0]} is above {sides.names[1]} in {above} of {len(pairs)} seeds."
        return drawing.to_svg(figure, name=name, label=label)


def reported_figures(rows: Sequence[ReportedRow], *, name: str, quantity: str) -> str:
    """Published values (markers) against the 95 % prediction interval of one run of ours (bars)."""
    if not rows:
        return ""
    with drawing.style():
        figure, axes = drawing.sheet(NARROW, 42 * len(rows) + 54, Margins(left=8, right=8, top=4))
        for y, row in enumerate(rows):
            low, high = _ends(row.value if row.mean is None else row.mean, row.low, row.high)
            axes.plot([low, high], [y, y], color=MUTED, linewidth=6, alpha=0.55, solid_capstyle="butt")
            if row.mean is not None:
                axes.plot([row.mean], [y], "|", color=INK, markersize=13, markeredgewidth=2)
            colour, marker = drawing.colour(row.index), drawing.marker(row.index)
            face = PAPER if row.inside is False else colour
            axes.plot(row.value, y, marker, color=face, markeredgecolor=colour, markeredgewidth=2, markersize=7)
            text = drawing.fit(f"{row.source} · {row.what}", NARROW - 16)
            axes.annotate(text, (0, y - 0.42), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL,
                          bbox=CLEARED)  # fmt: skip
        axes.set_ylim(len(rows) - 0.6, -0.75)
        axes.set_xlim(
            *drawing.window([v for row in rows for v in (row.value, row.low, row.high) if v is not None], 0.06)
        )
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel(drawing.fit(quantity, NARROW - 16))
        inside = sum(row.inside is True for row in rows)
        label = f"{quantity}: {inside} of {len(rows)} published figures lie inside our interval for a single run."
        return drawing.to_svg(figure, name=name, label=label)


def _ends(middle: float, low: float | None, high: float | None) -> tuple[float, float]:
    return (middle if low is None else low, middle if high is None else high)

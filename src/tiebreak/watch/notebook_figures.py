"""The page's charts for a notebook, as SVG text: an interval that narrows, learning curves. Drawn in milliseconds.

They are made of the same snapshot as the page, and look like it. matplotlib would take longer than an update may cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from tiebreak.report import formatting
from tiebreak.report.figures import drawing

WIDTH, HEIGHT = 420, 230  # px
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 10, 40  # px
WIDEST = 4  # times the present interval: the first ones, over two or three seeds, would flatten all others
MOST_BANDS = 4  # more of them hide each other
INK, MUTED, RULE, BLUE = "currentColor", "#808890", "rgba(128, 128, 128, .3)", "#3b8fc4"

Snapshot = Mapping[str, Any]
Scale = Callable[[float], float]
Pairs = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class _Sheet:
    svg: Element
    x: Scale
    y: Scale

    def add(self, tag: str, text: str | None = None, **attributes: Any) -> None:
        """A mark; `_` in the name of an attribute stands for `-`."""
        shown = {key.replace("_", "-"): _short(value) for key, value in attributes.items() if value is not None}
        SubElement(self.svg, tag, shown).text = text

    def path(self, points: Sequence[tuple[float, float]], **attributes: Any) -> None:
        """A line through points, given in the axes' own units."""
        drawn = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        self.add("path", d=f"M{drawn}{'Z' if 'fill_opacity' in attributes else ''}", **attributes)


def interval_figure(comparison: Snapshot) -> str:
    """The interval of a comparison by number of seeds; empty while there is none."""
    path = [point for point in comparison["path"] if _known(point["low"], point["high"], point["difference"])]
    if not path:
        return ""
    last, margin = path[-1], comparison["margin"]
    most = WIDEST * (last["high"] - last["low"])
    shown = [point for point in path if point["high"] - point["low"] <= most or point is last]
    ends = [end for point in shown for end in (point["low"], point["high"])]
    label = f"{comparison['label']}: {formatting.signed(last['difference'])} with {last['n']} seeds"
    sheet = _sheet([point["n"] for point in path], drawing.window([0.0, margin, -margin, *ends], 0.08), "seeds", label)
    band = sheet.y(-margin) - sheet.y(margin)
    width = WIDTH - LEFT - RIGHT
    sheet.add("rect", x=LEFT, y=sheet.y(margin), width=width, height=band, fill=MUTED, fill_opacity=0.18)
    sheet.path([(path[0]["n"], 0.0), (max(last["n"], path[0]["n"] + 1), 0.0)], stroke=INK)
    around = [(point["n"], point["high"]) for point in shown] + [(point["n"], point["low"]) for point in shown[::-1]]
    sheet.path(around, fill=BLUE, fill_opacity=0.22)
    middle = [(point["n"], point["difference"]) for point in shown]
    sheet.path(middle, fill="none", stroke=BLUE, stroke_width=2)
    sheet.path([(last["n"], last["low"]), (last["n"], last["high"])], stroke=INK, stroke_width=4)
    at, up = sheet.x(last["n"]), sheet.y(last["difference"])
    sheet.add("path", d=f"M{at:.1f} {up - 6:.1f}l6 6-6 6-6-6z", fill="var(--paper)", stroke=INK, stroke_width=2)
    written = formatting.signed_minus(last["difference"])
    sheet.add("text", written, x=at - 11, y=up - 8, text_anchor="end", font_weight="bold", fill=INK)
    return ElementTree.tostring(sheet.svg, encoding="unicode")


def curve_figure(curves: Sequence[Snapshot], places: Mapping[str, int], title: str) -> str:
    """Curves of one metric and split, with bands if they are few; `places` of the arms decide the colours."""
    curves = [curve for curve in curves if curve["epochs"]]
    if not curves:
        return ""
    means = [value for curve in curves for value in curve["mean"]]
    ends = [value for curve in curves for key in ("low", "high") for value in curve[key]]
    inside, whole = drawing.window(means, 0.75), drawing.window([*means, *ends], 0.05)
    limits = max(inside[0], whole[0]), min(inside[1], whole[1])
    sheet = _sheet([epoch for curve in curves for epoch in curve["epochs"]], limits, "epoch", f"{title} per epoch")
    for curve in curves if len(curves) <= MOST_BANDS else ():
        low, high = (_inside(_pairs(curve, key), limits) for key in ("low", "high"))
        sheet.path([*high, *low[::-1]], fill=drawing.colour(places[curve["arm"]]), fill_opacity=0.2)
    for curve in curves:
        place, points = places[curve["arm"]], _inside(_pairs(curve, "mean"), limits)
        sheet.path(points, fill="none", stroke=drawing.colour(place), stroke_width=2, stroke_linejoin="round")
        x, y = sheet.x(points[-1][0]) - 5, sheet.y(points[-1][1]) - 5
        move = f"translate({x:.1f} {y:.1f}) scale(.83)"
        sheet.add("path", d=drawing.swatch(place), fill=drawing.colour(place), transform=move)
    return ElementTree.tostring(sheet.svg, encoding="unicode")


def _pairs(curve: Snapshot, key: str) -> Pairs:
    return list(zip(curve["epochs"], curve[key], strict=True))


def _inside(points: Pairs, limits: tuple[float, float]) -> Pairs:
    return [(x, min(max(y, limits[0]), limits[1])) for x, y in points]


def _sheet(xs: Iterable[float], limits: tuple[float, float], name: str, label: str) -> _Sheet:
    """Axes and their numbers; `name` is that of the x axis."""
    found = list(xs)
    first, last = min(found), max(*found, min(found) + 1)
    low, high = limits
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(value: float) -> float:
        return LEFT + (value - first) / (last - first) * (right - LEFT)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - TOP)

    svg = Element("svg", {"class": "chart", "role": "img", "aria-label": label, "viewBox": f"0 0 {WIDTH} {HEIGHT}"})
    sheet = _Sheet(svg=svg, x=x, y=y)
    for value, text in ticks(low, high, 5):
        sheet.add("line", x1=LEFT, x2=right, y1=y(value), y2=y(value), stroke=RULE)
        sheet.add("text", text, x=LEFT - 7, y=y(value) + 4, text_anchor="end", fill=INK, font_size=11)
    for value, text in ticks(first, last, 6, whole=True):
        sheet.add("text", text, x=x(value), y=bottom + 16, text_anchor="middle", fill=INK, font_size=11)
    sheet.add("line", x1=LEFT, x2=right, y1=bottom, y2=bottom, stroke=MUTED)
    sheet.add("text", name, x=(LEFT + right) / 2, y=bottom + 33, text_anchor="middle", fill=INK, font_size=11)
    return sheet


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[tuple[float, str]]:
    """Round numbers between two ends, about `most` of them, and how they are written.

    >>> ticks(0.0, 0.04, 3)
    [(0.0, '0.00'), (0.02, '0.02'), (0.04, '0.04')]
    >>> ticks(2, 9, 4, whole=True)
    [(2, '2'), (4, '4'), (6, '6'), (8, '8')]
    """
    rough = (high - low) / most or 1.0
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    step = max(1, round(step)) if whole else step
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(place * step, formatting.true_minus(f"{place * step:.{digits}f}")) for place in places]


def _known(*values: float | None) -> bool:
    return all(value is not None for value in values)


def _short(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

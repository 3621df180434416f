"""Scores by a property of the examples, such as the length of a sentence: lines per arm, and the same in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence, point
from tiebreak.report.exhibits import exhibit_figures, prepared
from tiebreak.report.exhibits.prepared import Line
from tiebreak.report.figures.drawing import Legend
from tiebreak.report.figures.main_figures import readable_window
from tiebreak.text import printable
from tiebreak.verdict import ranges

MOST_CURVES = 9
MOST_COLUMNS = 16  # of a table
NONE = "–"


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """One kind of breakdown: what every arm scores at every x, and how many examples are behind it."""

    name: str
    title: str
    axes: tuple[str, str]
    lines: Sequence[Line]
    examples: dict[float, set[int]]

    @property
    def amounts(self) -> list[float]:
        """Every x that some arm has a score at."""
        return sorted({point.x for line in self.lines for point in line.points})


@dataclass(frozen=True, kw_only=True)
class BreakdownTable:
    """The same in text, not of every x where these are many; `examples` is empty where their number is not known."""

    title: str
    left_out: str
    axes: tuple[str, str]
    amounts: Sequence[str]
    examples: Sequence[str]
    rows: Sequence[tuple[str, int, str, Sequence[str]]]  # arm, its place, seeds, scores


def breakdowns(evidence: Evidence) -> list[Breakdown]:
    """Every curve that the runs at the arms' chosen settings stored, over their seeds."""
    arrays = {
        arm: [found for _, found in prepared.stored(evidence, arm, "curves")] for _, arm in evidence.arms_with_runs()
    }
    every = [found for some in arrays.values() for found in some]
    names = dict.fromkeys(
        key.removesuffix("_x") for found in every for key in found if key.endswith("_x") and f"{key[:-2]}_y" in found
    )
    shown = []
    for name in names:
        titles = [str(found[f"{name}_title"]) for found in every if f"{name}_title" in found]
        labels = [found[f"{name}_label"].tolist() for found in every if f"{name}_label" in found]
        across, upwards = next((label for label in labels if len(label) == 2), ("x", "score"))
        axes = printable(str(across)), printable(str(upwards))
        within = range_of_label(axes[1])
        examples: dict[float, set[int]] = {}
        lines = []
        for index, arm in evidence.arms_with_runs():
            scores: dict[float, list[float]] = {}
            for found in arrays[arm]:
                for x, y, many in _triples(found, name):
                    scores.setdefault(x, []).append(y)
                    examples.setdefault(x, set()).update([] if many is None else [many])
            points = [point(x, scores[x], within) for x in sorted(scores)]
            lines += [Line(arm=arm, index=index, points=points)] if points else []
        if lines:
            title = printable(titles[0]) if titles else f"{axes[1]} by {axes[0]}"
            shown.append(Breakdown(name=name, title=title, axes=axes, lines=lines, examples=examples))
    return shown[:MOST_CURVES]


def range_of_label(label: str) -> ranges.Range:
    """The values that a score can take, by the metric at the end of its name.

    >>> range_of_label("test accuracy"), range_of_label("character error rate")
    ((0.0, 1.0), (0.0, inf))
    """
    words = label.removesuffix(" rate").split()
    return ranges.range_of(words[-1]) if words else ranges.ANYTHING


def _triples(found: Any, name: str) -> list[tuple[float, float, int | None]]:
    """Each x with its y and the number of examples, without values that are not finite."""
    x, y, n = (found.get(f"{name}_{part}") for part in "xyn")
    if x is None or y is None or x.ndim != 1 or y.ndim != 1 or x.dtype.kind not in "fiu" or y.dtype.kind not in "fiu":
        return []
    counted = n.tolist() if n is not None and n.shape == x.shape else [None] * len(x)
    return [
        (round(float(place), 4), float(score), int(many) if many is not None and math.isfinite(many) else None)
        for place, score, many in zip(x.tolist(), y.tolist(), counted, strict=False)
        if math.isfinite(place) and math.isfinite(score)
    ]


def content(evidence: Evidence) -> dict[str, Any]:
    """Tables, and the legend with the least number of seeds behind each arm's lines."""
    found = breakdowns(evidence)
    legend = seeds_legend(evidence, [line for item in found for line in item.lines])
    return {"breakdown": [table(item) for item in found], "breakdown_legend": legend}


def seeds_legend(evidence: Evidence, lines: Sequence[Line]) -> list[Legend]:
    """Every arm that is drawn, with the least number of seeds behind its lines."""
    seeds: dict[tuple[int, str], int] = {}
    for line in lines:
        least = min(point.n for point in line.points)
        seeds[line.index, line.arm] = min(least, seeds.get((line.index, line.arm), least))
    return [
        Legend(index=index, text=f"{arm}: n = {least} of {evidence.study.seeds} seeds")
        for (index, arm), least in sorted(seeds.items())
    ]


def table(item: Breakdown) -> BreakdownTable:
    """A row for each arm, a column for each x; where these are many, for some of them."""
    step = -(-len(item.amounts) // MOST_COLUMNS)
    shown = item.amounts[::step]
    rows = []
    for line in item.lines:
        means = {point.x: formatting.score(point.mean) for point in line.points}
        least, most = (pick(point.n for point in line.points) for pick in (min, max))
        seeds = str(least) if least == most else f"{least} to {most}"
        rows.append((line.arm, line.index, seeds, [means.get(x, formatting.MISSING) for x in shown]))
    counts = [sorted(item.examples.get(x, ())) for x in shown]
    return BreakdownTable(
        title=item.title,
        left_out=f"one column of {step} is shown" if step > 1 else "",
        axes=item.axes,
        amounts=[f"{x:g}" for x in shown],
        examples=[formatting.number_ranges(some) or NONE for some in counts] if any(counts) else [],
        rows=rows,
    )


def figures(evidence: Evidence) -> dict[str, Any]:
    """A panel for each breakdown: each has a scale of its own, since quantities may differ."""
    panels = []
    for number, item in enumerate(breakdowns(evidence)):
        within = readable_window([each for line in item.lines for each in line.points], range_of_label(item.axes[1]))
        panels.append(
            exhibit_figures.curve_panel(item.lines, name=f"breakdown-{number}", axes=item.axes, within=within)
        )
    return {"breakdown_panels": panels}

"""Score against cost: which arms are beaten by no other in both. For three or more arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiebreak.report import formatting
from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import MUTED, Margins
from tiebreak.study.registry import Goal
from tiebreak.text import listed, rounded
from tiebreak.verdict.model import ArmResult

WIDTH, HEIGHT = 358, 280  # px
LEAST_ARMS = 3
COSTS = {  # of an arm: what the axis says; the first that all arms have and in which they differ
    "step_ms": "a training step of one run, timed alone (ms)",
    "flops": "work for one example (FLOP)",
    "parameters": "parameters",
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """An arm: what it costs and what it scores, with the 95 % interval of its mean."""

    name: str
    index: int
    cost: float
    arm: ArmResult
    best: bool  # no other arm is at least as good in both and better in one


def costs(arms: Sequence[ArmResult]) -> tuple[str, list[tuple[int, ArmResult, float]]]:
    """The cost that tells the arms apart, and every arm that has a score with its cost; nothing below three arms."""
    scored = [(index, arm) for index, arm in enumerate(arms) if arm.mean is not None]
    for key, name in COSTS.items():
        found = [(index, arm, getattr(arm, key)) for index, arm in scored]
        values = [cost for *_, cost in found]
        if len(found) >= LEAST_ARMS and all(values) and len(set(values)) > 1:
            return name, found
    return "", []


def points(arms: Sequence[ArmResult], goal: Goal) -> tuple[str, list[Point]]:
    """The arms with their costs; `best` marks those on the Pareto front."""
    name, found = costs(arms)
    sign = 1 if goal == "max" else -1
    scores = {arm.name: sign * (arm.mean or 0.0) for _, arm, _ in found}
    return name, [
        Point(
            name=arm.name,
            index=index,
            cost=cost,
            arm=arm,
            best=not any(
                other <= cost and scores[rival.name] >= scores[arm.name]
                and (other < cost or scores[rival.name] > scores[arm.name])
                for _, rival, other in found
            ),
        )
        for index, arm, cost in found
    ]  # fmt: skip


def pareto_plot(arms: Sequence[ArmResult], *, quantity: str, goal: Goal) -> str:
    """Cost across, score upwards; filled markers on a grey line are beaten by no other arm in both."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    name, found = points(arms, goal)
    if not found:
        return ""
    front = sorted((point for point in found if point.best), key=lambda point: point.cost)
    with drawing.style():
        figure, axes = drawing.sheet(WIDTH, HEIGHT, Margins(left=58, right=14, top=12, bottom=46))
        axes.plot(
            [point.cost for point in front], [point.arm.mean or 0.0 for point in front], color=MUTED, linewidth=1.5
        )
        for point in found:
            colour, mean = drawing.colour(point.index), point.arm.mean or 0.0
            ends = [mean if end is None else end for end in (point.arm.low, point.arm.high)]
            axes.plot([point.cost] * 2, ends, color=colour, linewidth=2)
            axes.plot(point.cost, mean, drawing.marker(point.index), color=colour if point.best else drawing.PAPER,
                      markeredgecolor=colour, markeredgewidth=2, markersize=8)  # fmt: skip
        axes.set_xlim(*drawing.window([point.cost for point in found], 0.2))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
        axes.margins(y=0.18)
        axes.grid(axis="y")
        axes.set_xlabel(drawing.fit(name, WIDTH - 20))
        axes.set_ylabel(drawing.fit(quantity, HEIGHT - 60))
        best = listed([f"{point.name} ({formatting.score(point.arm.mean)})" for point in front])
        return drawing.to_svg(
            figure, name="pareto", label=f"{quantity} against {name}. Beaten by none in both: {best}."
        )


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{rounded(value / size, 3)} {unit}"
    return rounded(value, 3)

"""Do the metrics of a task agree? Spearman's rank correlation between every two of them over all runs and epochs.

Metrics in which less is better are turned round first, so that +1 always means that both rank alike. The epochs of one
run are not independent of each other: the numbers describe what was recorded, and have no p value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.report.evidence import Evidence
from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import Margins
from tiebreak.report.page import metric_table
from tiebreak.results.correlation import spearman
from tiebreak.text import listed, number_of

LEAST_METRICS, LEAST_VALUES = 3, 8  # of a table: a handful of epochs says nothing
MOST_DOTS, MOST_PANELS = 240, 6
PANEL = (300, 210)  # px
NONE = "–"  # no correlation: too few values, or they do not vary


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Values [metric, epoch of a run] on validation data, NaN where there are none, and whose they are."""

    metrics: Sequence[str]
    values: npt.NDArray[np.float64]
    places: npt.NDArray[np.int64]  # of the arm in the study
    runs: int


def recorded(evidence: Evidence) -> Recorded | None:
    """Every epoch of every planned trajectory; None where there are not enough metrics for a table."""
    keys = metric_table.drawn(evidence.study)
    columns, places, seen = [], [], set()
    for index, arm in evidence.arms_with_runs():
        for identity in evidence.plan.arm(arm).runs.values():
            trajectory = evidence.trajectories[identity]
            if trajectory in seen:
                continue
            seen.add(trajectory)
            for record in evidence.epochs(identity).values():
                columns.append([record.metrics.get(f"val_{key}", math.nan) for key in keys])
                places.append(index)
    values = np.asarray(columns, dtype=np.float64).reshape(-1, len(keys)).T
    values = np.where(np.isfinite(values), values, np.nan)
    there = [row for row in range(len(keys)) if np.any(np.isfinite(values[row]))]
    if len(there) < LEAST_METRICS or len(columns) < LEAST_VALUES:
        return None
    kept = [keys[row] for row in there]
    return Recorded(metrics=kept, values=values[there], places=np.asarray(places, dtype=np.int64), runs=len(seen))


def content(evidence: Evidence) -> dict[str, Any]:
    """The table: a row and a column for each metric."""
    found = recorded(evidence)
    if found is None:
        return {"agreement": [], "agreement_names": [], "agreement_note": ""}
    turned = [values if evidence.study.goal(name) == "max" else -values
              for name, values in zip(found.metrics, found.values, strict=True)]  # fmt: skip
    rows = [
        (name, [_cell(turned[row], turned[column]) if column < row else "" for column in range(len(turned) - 1)])
        for row, name in enumerate(map(metric_table.readable, found.metrics))
    ][1:]
    reversed_ = [metric_table.readable(name) for name in found.metrics if evidence.study.goal(name) == "min"]
    less = f" In {listed(reversed_)} less is better; turned round here." if reversed_ else ""
    return {
        "agreement": rows,
        "agreement_names": [metric_table.readable(name) for name in found.metrics[:-1]],
        "agreement_note": (
            f"Spearman's rank correlation of validation scores over {number_of(found.runs, 'run')} and "
            f"their epochs, in brackets how many values. +1: both rank alike; 0: one says nothing about the other."
            f"{less} Epochs of one run are not independent, so there is no p value."
        ),
    }


def _cell(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> str:
    both = np.isfinite(first) & np.isfinite(second)
    n = int(both.sum())
    found = spearman(first[both], second[both])
    return f"{NONE if found is None else f'{found:+.2f}'} ({n:,})"


def figures(evidence: Evidence) -> dict[str, Any]:
    """The study's metric against each of the others."""
    found = recorded(evidence)
    if found is None:
        return {"agreement_panels": [], "agreement_dots": ""}
    total = found.values.shape[1]
    kept = np.unique(np.linspace(0, total - 1, min(total, MOST_DOTS)).astype(int))
    panels = [
        _scatter(found, kept, row, name=f"agreement-{row}")
        for row in range(1, min(len(found.metrics), MOST_PANELS + 1))
    ]
    thinned = f" Drawn: {len(kept)} of {total:,}, evenly taken." if len(kept) < total else ""
    return {"agreement_panels": panels, "agreement_dots": thinned}


def _scatter(found: Recorded, kept: npt.NDArray[np.int64], row: int, *, name: str) -> str:
    from matplotlib.ticker import MaxNLocator

    main, other = found.metrics[0], found.metrics[row]
    with drawing.style():
        figure, axes = drawing.sheet(*PANEL, Margins(left=56, right=10, top=8))
        for place in np.unique(found.places):
            own = kept[found.places[kept] == place]
            x, y = found.values[0, own], found.values[row, own]
            axes.plot(x, y, drawing.marker(int(place)), color=drawing.colour(int(place)), markersize=3.5, alpha=0.6,
                      markeredgewidth=0)  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.grid()
        axes.set_xlabel(drawing.fit(metric_table.readable(main), PANEL[0] - 66))
        axes.set_ylabel(drawing.fit(metric_table.readable(other), PANEL[1] - 30))
        label = (
            f"{metric_table.readable(other)} against {metric_table.readable(main)}, a dot for each epoch of each run."
        )
        return drawing.to_svg(figure, name=name, label=label)

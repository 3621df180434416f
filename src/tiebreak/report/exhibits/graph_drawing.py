"""A graph whose nodes are classified: drawn once for each arm, coloured by the predicted class, errors ringed.

A small graph is drawn as lines and stays sharp; a large one becomes an image, for thousands of lines make a page heavy.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import inline_images, prepared
from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import INK, MUTED, Margins
from tiebreak.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BUDGET = 300_000  # characters of the page
SIDE = 340  # px
MOST_NODES, MOST_EDGES = 150, 600  # of a graph drawn as lines
FINER, IMAGE_COLOURS = 2, 24  # of a graph drawn as an image: its pixels, its colours
MORE = ("#8c564b", "#17becf", "#bcbd22", "#9467bd", "#e377c2", "#aec7e8", "#98df8a", "#ff9896")
COLOURS = (*drawing.PALETTE, *MORE)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The predictions of one run of an arm for every node; a label below 0 is not known."""

    arm: str
    index: int
    seed: int
    positions: npt.NDArray[np.float64]  # [N, 2]
    edges: npt.NDArray[np.int64]  # [E, 2]
    predicted: npt.NDArray[np.int64]  # [N]
    labels: npt.NDArray[np.int64]  # [N]
    names: Sequence[str]

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Which nodes have a known label and a wrong prediction."""
        wrong: npt.NDArray[np.bool_] = (self.labels >= 0) & (self.predicted != self.labels)
        return wrong

    def summary(self) -> str:
        """The arm, and how many of its answers are right."""
        known = int((self.labels >= 0).sum())
        return f"{self.arm}, seed {self.seed}: {known - int(self.wrong.sum()):,} of {known:,} nodes right"

    def name(self, number: int) -> str:
        """The class with this number."""
        return self.names[number] if 0 <= number < len(self.names) else str(number)


@dataclass(frozen=True, kw_only=True)
class GraphPanel:
    """A drawn graph: an SVG, or the address of an image."""

    index: int
    text: str
    svg: str = ""
    address: str = ""

    @property
    def cost(self) -> int:
        """Characters of the page."""
        return len(self.svg) + len(self.address)


def graphs(evidence: Evidence) -> list[Graph]:
    """The graph of the first run of each arm that has a whole one."""
    found = []
    for index, arm in evidence.arms_with_runs():
        for seed, arrays in prepared.stored(evidence, arm, "graph"):
            if _whole(arrays):
                names = [printable(str(name)) for name in arrays["class_names"].tolist()]
                parts = {name: arrays[name].astype(np.int64) for name in ("edges", "predicted", "labels")}
                positions = arrays["positions"].astype(np.float64)
                found.append(Graph(arm=arm, index=index, seed=seed, positions=positions, names=names, **parts))
                break
    return found


def _whole(arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Whether all the parts are there, and fit together."""
    if not {"positions", "edges", "predicted", "labels", "class_names"} <= arrays.keys():
        return False
    positions, edges = arrays["positions"], arrays["edges"]
    nodes = len(positions) if positions.ndim == 2 and positions.shape[1] == 2 else 0
    fits = arrays["predicted"].shape == arrays["labels"].shape == (nodes,) and arrays["class_names"].ndim == 1
    joined = edges.size == 0 or (edges.ndim == 2 and edges.shape[1] == 2 and edges.min() >= 0 and edges.max() < nodes)
    return bool(nodes and fits and joined and np.all(arrays["predicted"] >= 0) and np.all(np.isfinite(positions)))


def content(evidence: Evidence) -> dict[str, Any]:
    """How many nodes each arm gets right."""
    return {"graph": [item.summary() for item in graphs(evidence)]}


def figures(evidence: Evidence) -> dict[str, Any]:
    """As many drawings as fit on a page, and the colours of the classes."""
    found = graphs(evidence)
    panels: list[GraphPanel] = []
    for number, item in enumerate(found):
        panel = _panel(item, f"graph-{number}")
        if panels and sum(each.cost for each in panels) + panel.cost > BUDGET:
            break
        panels.append(panel)
    classes = sorted({int(number) for item in found for number in np.unique(item.predicted)})
    legend = [(_colour(number), found[0].name(number)) for number in classes]
    left = f"Drawn: {len(panels)} of {len(found)} arms." if len(panels) < len(found) else ""
    return {"graph_panels": panels, "graph_legend": legend, "graph_left": left}


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _panel(item: Graph, name: str) -> GraphPanel:
    small = len(item.positions) <= MOST_NODES and len(item.edges) <= MOST_EDGES
    with drawing.style():
        figure, axes = drawing.sheet(SIDE, SIDE, Margins(left=8, right=8, top=8, bottom=8))
        _draw(axes, item, small)
        if small:
            return GraphPanel(index=item.index, text=item.summary(),
                              svg=drawing.to_svg(figure, name=name, label=f"Graph of {item.summary()}."))  # fmt: skip
        return GraphPanel(index=item.index, text=item.summary(), address=_image(figure))


def _draw(axes: Axes, item: Graph, small: bool) -> None:
    """Edges below, nodes above; what is wrong is a larger square in a ring."""
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    if len(item.edges):
        ends = item.positions[item.edges.reshape(-1, 2)]  # [E, 2, 2]
        gaps = np.full((len(ends), 1, 2), np.nan)
        line = np.concatenate([ends, gaps], axis=1).reshape(-1, 2)  # one path for all of them
        axes.plot(line[:, 0], line[:, 1], color=MUTED if small else "#8a8a8a", linewidth=0.8 if small else 0.3,
                  alpha=0.45, zorder=1)  # fmt: skip
    size = 8 if small else max(2.0, 40 / len(item.positions) ** 0.5 + 1.5)
    for number in np.unique(item.predicted):
        of_class = item.predicted == number
        for chosen, marker, scale in ((of_class & ~item.wrong, "o", 1.0), (of_class & item.wrong, "s", 0.85)):
            places = item.positions[chosen]
            if not len(places):
                continue
            if marker == "s":
                ink = INK if small else "#8a8a8a"
                axes.plot(places[:, 0], places[:, 1], "o", color="none", markeredgecolor=ink,
                          markersize=1.9 * size, markeredgewidth=1.8 if small else 0.9, zorder=3)  # fmt: skip
            axes.plot(places[:, 0], places[:, 1], marker, color=_colour(int(number)), markersize=scale * size,
                      markeredgewidth=0, zorder=2 if marker == "o" else 4)  # fmt: skip


def _image(figure: Figure) -> str:
    """The figure as a data: address, its background clear, with few colours."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=72 * FINER, transparent=True)
    buffer.seek(0)
    few = Image.open(buffer).convert("RGBA").quantize(IMAGE_COLOURS, method=Image.Quantize.FASTOCTREE)
    written = io.BytesIO()
    few.save(written, "PNG", optimize=True)
    return inline_images.BEFORE + base64.b64encode(written.getvalue()).decode("ascii")

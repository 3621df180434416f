"""What a run attends to: maps of weights with the words at their rows and columns, a spectrogram above where one is.

Weights are drawn as the opacity of the arm's colour, so that the maps suit a light and a dark page. Long maps are made
smaller by averaging neighbours: a page need not be finer than its pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import prepared
from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import Margins
from tiebreak.text import printable, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.NDArray[np.float64]

BUDGET = 220_000  # characters of the page
NAMED, NAMED_LETTERS = 40, 60  # rows or columns up to here have all their labels; more where these are single letters
MOST_TICKS = 9
LEAST_CELL, LEAST_LETTER, LARGEST_CELL, SIDE = 14, 11, 22, 280  # px
FINEST = (120, 240)  # rows and columns that are drawn one by one
PICTURE = 62  # px, the height of a spectrogram
LONGEST_NAME = 14  # letters
SHADES = 24  # steps of opacity: few of them make a small file


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Weights [rows, columns] of one run on one example; `picture` [bands, time] lies above its columns."""

    number: int  # of the example
    title: str
    arm: str
    index: int
    seed: int
    weights: Values
    rows: Sequence[str]
    columns: Sequence[str]
    picture: Values | None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A map as the page shows it."""

    index: int
    text: str
    title: str  # where it is not that of the whole group
    svg: str
    width: int


@dataclass(frozen=True, kw_only=True)
class Group:
    """The maps of all arms on one example."""

    title: str
    panels: Sequence[Panel]


def maps(evidence: Evidence) -> list[HeatMap]:
    """The maps of the first run of each arm that has any: first those of the first example, of all arms."""
    found: list[HeatMap] = []
    for index, arm in evidence.arms_with_runs():
        for seed, arrays in prepared.stored(evidence, arm, "attention"):
            own = [_map(arrays, j, arm, index, seed) for j in _numbers(arrays)]
            if own:
                found += own
                break
    return sorted(found, key=lambda item: item.number)


def _numbers(arrays: Mapping[str, npt.NDArray[Any]]) -> Iterator[int]:
    """The examples that have a map: a matrix of numbers with something in it."""
    for j in count():
        weights = arrays.get(f"weights_{j}")
        if weights is None:
            return
        if weights.ndim == 2 and weights.size and weights.dtype.kind in "fiub":
            yield j


def _map(arrays: Mapping[str, npt.NDArray[Any]], j: int, arm: str, index: int, seed: int) -> HeatMap:
    weights, picture = arrays[f"weights_{j}"], arrays.get(f"picture_{j}")
    drawable = picture is not None and picture.ndim == 2 and picture.size and picture.dtype.kind in "fiub"
    return HeatMap(
        number=j,
        title=printable(str(arrays[f"title_{j}"])) if f"title_{j}" in arrays else "",
        arm=arm,
        index=index,
        seed=seed,
        weights=np.nan_to_num(weights.astype(np.float64), posinf=0.0, neginf=0.0),
        rows=_labels(arrays.get(f"rows_{j}"), weights.shape[0]),
        columns=_labels(arrays.get(f"columns_{j}"), weights.shape[1]),
        picture=picture.astype(np.float64) if picture is not None and drawable else None,
    )


def _labels(given: npt.NDArray[Any] | None, many: int) -> list[str]:
    """One for each row or column; none where there are none, or not as many as needed."""
    if given is None or given.shape != (many,):
        return []
    if not any(given.tolist()):
        return []
    return [printable(str(label)) if str(label).strip() else "␣" * len(label) for label in given.tolist()]


def content(evidence: Evidence) -> dict[str, Any]:
    """Which maps there are, in words."""
    titles: dict[str, list[str]] = {}
    for item in maps(evidence):
        titles.setdefault(item.title or f"example {item.number + 1}", []).append(f"{item.arm} (seed {item.seed})")
    return {"attention": [(title, ", ".join(arms)) for title, arms in titles.items()]}


def figures(evidence: Evidence) -> dict[str, Any]:
    """As many maps as fit on a page."""
    found = maps(evidence)
    titles: dict[int, set[str]] = {}
    for item in found:
        titles.setdefault(item.number, set()).add(item.title)
    groups: dict[int, list[Panel]] = {}
    spent = shown = 0
    for place, item in enumerate(found):
        panel = _panel(item, f"attention-{place}", item.title if len(titles[item.number]) > 1 else "")
        spent += len(panel.svg)
        if shown and spent > BUDGET:
            break
        groups.setdefault(item.number, []).append(panel)
        shown += 1
    left = f"Shown: {shown} of {len(found)} maps." if shown < len(found) else ""
    heads = {j: min(some) if len(some) == 1 and min(some) else f"Example {j + 1}" for j, some in titles.items()}
    return {"heat_groups": [Group(title=heads[j], panels=some) for j, some in groups.items()], "heat_left": left}


def _panel(item: HeatMap, name: str, title: str) -> Panel:
    rows, columns = item.weights.shape
    labels = [[shorten(label, LONGEST_NAME) for label in some] for some in (item.rows, item.columns)]
    down, across = _cell(rows, labels[0]), _cell(columns, labels[1])
    room = [drawing.letters_room(some or ["0000"]) for some in labels]
    upright = bool(labels[1]) and room[1] > across * (1 if columns <= _named(labels[1]) else columns / MOST_TICKS)
    above = PICTURE + 6 if item.picture is not None else 0
    margins = Margins(left=room[0] + 12, right=14, top=6 + above, bottom=(room[1] if upright else 14) + 26)
    width, height = round(across * columns), round(down * rows)
    whole = (width + margins.left + margins.right, height + margins.top + margins.bottom)
    with drawing.style():
        figure, axes = drawing.sheet(*whole, margins)
        _draw(axes, shrunk(item.weights, *FINEST), drawing.colour(item.index), (rows, columns))
        _ticks(axes, labels, (rows, columns), upright)
        axes.set_xlabel("frame" if item.picture is not None else "" if labels[1] else "position")
        if item.picture is not None:
            box = (margins.left / whole[0], (height + margins.bottom + 6) / whole[1], width / whole[0],
                   PICTURE / whole[1])  # fmt: skip
            upper = figure.add_axes(box)
            _draw(upper, shrunk(_contrast(item.picture)[::-1], *FINEST), "#767676", item.picture.shape)
            upper.set_xticks([])
            upper.set_yticks([])
        label = f"Heat map of {item.arm}, seed {item.seed}: {item.title}. {rows} rows, {columns} columns."
        svg = drawing.to_svg(figure, name=name, label=label)
    return Panel(index=item.index, text=f"{item.arm}, seed {item.seed}", title=title, svg=svg, width=whole[0])


def _named(labels: Sequence[str]) -> int:
    """Up to how many rows or columns all have their labels."""
    return NAMED_LETTERS if all(len(label) <= 1 for label in labels) else NAMED


def _cell(many: int, labels: Sequence[str]) -> float:
    """The size of a cell in pixels; a map with very many is no larger for it."""
    least = LEAST_LETTER if _named(labels) == NAMED_LETTERS else LEAST_CELL
    return min(LARGEST_CELL, max(least, SIDE / many)) if labels and many <= _named(labels) else SIDE / max(many, 13)


def _contrast(picture: Values) -> Values:
    """A spectrogram from 0 to 1, without its most extreme values: often in decibels, it has no zero of its own."""
    finite = picture[np.isfinite(picture)]
    low, high = np.quantile(finite, (0.02, 0.99)) if finite.size else (0.0, 1.0)
    return np.clip((np.nan_to_num(picture, nan=low, posinf=high, neginf=low) - low) / ((high - low) or 1.0), 0.0, 1.0)


def shrunk(values: Values, rows: int, columns: int) -> Values:
    """At most so many rows and columns, each the mean of its neighbours."""
    for axis, most in enumerate((rows, columns)):
        size = values.shape[axis]
        if size > most:
            starts = np.linspace(0, size, most, endpoint=False).astype(int)
            many = np.diff([*starts, size])
            sums = np.add.reduceat(values, starts, axis=axis)
            values = sums / (many[:, None] if axis == 0 else many[None, :])
    return values


def _draw(axes: Axes, values: Values, colour: str, shape: tuple[int, ...]) -> None:
    """Values as opacity, from 0 to the largest, in the places of the whole map."""
    largest = float(values.max(initial=0.0)) or 1.0
    shades = np.zeros((*values.shape, 4))
    shades[..., :3] = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    shades[..., 3] = np.round(np.clip(values / largest, 0.0, 1.0) * SHADES) / SHADES
    axes.imshow(shades, interpolation="none", aspect="auto", extent=(-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5))
    for border in axes.spines.values():
        border.set_visible(True)


def _ticks(axes: Axes, labels: Sequence[Sequence[str]], shape: tuple[int, int], upright: bool) -> None:
    for axis, names, many, turn in ((axes.yaxis, labels[0], shape[0], 0), (axes.xaxis, labels[1], shape[1], upright)):
        step = 1 if names and many <= _named(names) else _step(many)
        places = range(0, many, step)
        axis.set_ticks(places, [names[place] if names else str(place) for place in places])
        axis.set_tick_params(rotation=90 if turn else 0)


def _step(many: int) -> int:
    """The least round number of which not too many fit in."""
    rounds = (n * size for size in (1, 10, 100, 1_000, 10_000) for n in (1, 2, 5))
    return next((step for step in rounds if many <= MOST_TICKS * step), many)

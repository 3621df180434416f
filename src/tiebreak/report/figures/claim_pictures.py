"""One small picture for each claim: its deciding figures against the margin, or the numbers of its identity."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tiebreak.report import claim_text, formatting
from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import INK, MUTED, PAPER, RULE, SMALL, Margins
from tiebreak.text import printable
from tiebreak.verdict.docket import DocketEntry, Figure, PublishedFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tiebreak.theory.claims import ClaimStatus

WIDTH = 358  # px: a phone without its margins
ROW, HEAD, FOOT, LINE = 34, 24, 26, 14  # px: a bar, its heading, its axis, a further line of the heading
MOST = 4  # figures of one claim
Bars = Sequence[tuple[str, float]]
Evidence = Mapping[str, float | str]


def picture(status: ClaimStatus) -> str:
    """The picture of a claim; empty where nothing is known."""
    if status.outcome is not None:
        return identity_picture(status.entry.id, status.outcome.evidence)
    return "" if status.best is None else intervals(status.best, name=f"claim-{status.entry.id}")


def intervals(entry: DocketEntry, *, name: str) -> str:
    """Each deciding figure with its 95 % interval, the line of no effect and, in grey, the margin."""
    shown = [item for item in entry.figures if item.value is not None][:MOST]
    if not shown:
        return ""
    titles = [_lines(item.what) for item in shown]
    heights = [LINE * len(each) + HEAD - LINE + ROW + FOOT for each in titles]
    high = sum(heights)
    with drawing.style():
        from matplotlib.figure import Figure as Sheet

        sheet = Sheet(figsize=(WIDTH / 72, high / 72), dpi=72)
        for place, (item, title) in enumerate(zip(shown, titles, strict=True)):
            bottom = high - sum(heights[: place + 1]) + FOOT
            axes = sheet.add_axes((8 / WIDTH, bottom / high, (WIDTH - 16) / WIDTH, ROW / high))
            _interval(axes, item, title)
        label = "; ".join(map(claim_text.figure, shown))
        return drawing.to_svg(sheet, name=name, label=f"{label}. 95 % intervals.")


def _lines(text: str) -> list[str]:
    """A title in at most two lines, where it is too long for one."""
    room = WIDTH - 20
    first, *others = textwrap.wrap(printable(text), int(room / drawing.LETTER), break_on_hyphens=False)
    return [first, drawing.fit(" ".join(others), room)] if others else [first]


def _interval(axes: Axes, item: Figure, title: Sequence[str]) -> None:
    from matplotlib.ticker import MaxNLocator

    value = item.value or 0.0
    low, high = (value if end is None else end for end in (item.low, item.high))
    edges = [low, high, item.none]
    if item.margin is not None:
        axes.axvspan(item.none - item.margin, item.none + item.margin, color=RULE, linewidth=0)
        edges += [item.none - item.margin, item.none + item.margin]
    axes.axvline(item.none, color=INK, linewidth=1)
    axes.plot([low, high], [0, 0], color=INK, linewidth=5, solid_capstyle="butt")
    axes.plot([value], [0], "D", color=PAPER, markeredgecolor=INK, markeredgewidth=2, markersize=8)
    axes.text(0, 1.18, "\n".join(title), transform=axes.transAxes, fontsize=SMALL, linespacing=1.2)
    axes.set_xlim(*drawing.window(edges, 0.08))
    axes.set_ylim(-1, 1)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))


def published(items: Sequence[PublishedFigure], *, name: str) -> str:
    """Published figures (circles) against where a single run of ours falls (grey: 95 % prediction interval)."""
    shown = [item for item in items if item.mean is not None and item.low is not None and item.high is not None][:6]
    if not shown:
        return ""
    titles = [_lines(f"{formatting.sources([item.source])}: {item.what}") for item in shown]
    row = HEAD + ROW + LINE * (max(map(len, titles)) - 1)
    high = len(shown) * row + FOOT
    with drawing.style():
        sheet, axes = drawing.sheet(WIDTH, high, Margins(left=8, right=8, top=4, bottom=FOOT))
        values = []
        for y, item in enumerate(shown):
            assert item.low is not None
            assert item.high is not None
            assert item.mean is not None
            inside = item.low <= item.value <= item.high
            axes.plot([item.low, item.high], [y, y], color=MUTED, linewidth=6, alpha=0.55, solid_capstyle="butt")
            axes.plot([item.mean], [y], "|", color=INK, markersize=13, markeredgewidth=2)
            colour = drawing.colour(0)
            axes.plot(item.value, y, "o", color=colour if inside else PAPER, markeredgecolor=colour,
                      markeredgewidth=2, markersize=7)  # fmt: skip
            axes.annotate("\n".join(titles[y]), (0, y), xytext=(0, 12), xycoords=("axes fraction", "data"),
                          textcoords="offset points", va="bottom", fontsize=SMALL, linespacing=1.2)  # fmt: skip
            values += [item.low, item.high, item.value]
        axes.set_ylim(len(shown) - 0.6, -0.8)
        axes.set_xlim(*drawing.window(values, 0.06))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        label = "; ".join(f"{item.what} {item.value:g}: {claim_text.percentile(item)}" for item in shown)
        return drawing.to_svg(sheet, name=name, label=f"Published figures among single runs of ours. {label}.")


def identity_picture(claim: str, evidence: Evidence) -> str:
    """The numbers that an identity computed, as bars; empty where there are none to draw."""
    if claim == "conv-is-linear":
        return convolution_matrix()
    if claim not in IDENTITIES:
        return ""
    make, reference, unit = IDENTITIES[claim]
    return bars(make(evidence), reference=reference, unit=unit, name=f"claim-{claim}")


def convolution_matrix(side: int = 6, width: int = 3) -> str:
    """Which weight of a filter stands where in the matrix of its convolution: each row is one output."""
    import numpy as np

    many = side - width + 1
    matrix = np.full((many**2, side**2), np.nan)
    for row, column in np.ndindex(many, many):
        for i, j in np.ndindex(width, width):
            matrix[row * many + column, (row + i) * side + column + j] = i * width + j
    with drawing.style():
        sheet, axes = drawing.sheet(WIDTH, 190, Margins(left=8, right=8, top=6, bottom=26))
        for (row, column), weight in np.ndenumerate(matrix):
            if not np.isnan(weight):
                axes.plot(column, row, "s", color=drawing.colour(int(weight)), markersize=6)
        axes.set_xlim(-1, side**2)
        axes.set_ylim(many**2, -1)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel(f"a {width} x {width} filter on {side} x {side} pixels: {many**2} rows of {side**2}")
        return drawing.to_svg(
            sheet, name="claim-conv-is-linear", label="The matrix of a convolution, weight by weight."
        )


def bars(rows: Bars, *, reference: float | None, unit: str, name: str) -> str:
    """Labelled bars from zero, with a line at the reference."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if not rows:
        return ""
    high = 26 * len(rows) + 48
    room = min(drawing.letters_room([label for label, _ in rows]) + 12, 190)
    with drawing.style():
        sheet, axes = drawing.sheet(WIDTH, high, Margins(left=room, right=64, top=6, bottom=42))
        for y, (label, value) in enumerate(rows):
            axes.barh(y, value, height=0.6, color=drawing.colour(0))
            axes.annotate(_written(value), (value, y), xytext=(5, 0), textcoords="offset points", va="center",
                          fontsize=SMALL)  # fmt: skip
            axes.annotate(drawing.fit(label, room), (0, y), xycoords=("axes fraction", "data"), xytext=(-6, 0),
                          ha="right", textcoords="offset points", va="center", fontsize=SMALL)  # fmt: skip
        if reference is not None:
            axes.axvline(reference, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.05 * max([value for _, value in rows] + [reference or 0.0]) or 1.0)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(nbins=3))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _written(value)))
        axes.set_xlabel(drawing.fit(unit, WIDTH - room - 20))
        label = "; ".join(f"{text} {_written(value)}" for text, value in rows)
        return drawing.to_svg(sheet, name=name, label=f"{unit}: {label}.")


def _written(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _numbers(*keys: tuple[str, str]) -> Callable[[Evidence], Bars]:
    """Bars of these numbers of the evidence: its key, the label."""
    return lambda evidence: [(label, float(evidence[key])) for key, label in keys if key in evidence]


def _row_sums(evidence: Evidence) -> Bars:
    sums = re.findall(r"[\d.]+", str(evidence.get("row_sums_on_the_path", "")))
    return [(f"row {place}", float(value)) for place, value in enumerate(sums)]


def _parameters(evidence: Evidence) -> Bars:
    counts = [int(each.replace(",", "")) for each in re.findall(r"[\d,]+", str(evidence.get("at 28x28", "")))]
    return list(zip(("convolution", "fully connected"), counts, strict=False))


def _softmax_weights(evidence: Evidence) -> Bars:
    found = [(h, re.search(r"([\d,]+) softmax", str(evidence.get(f"h={h}", "")))) for h in (1, 2, 4, 8)]
    return [(f"{h} heads" if h > 1 else "1 head", float(each[1].replace(",", ""))) for h, each in found if each]


IDENTITIES: dict[str, tuple[Callable[[Evidence], Bars], float | None, str]] = {  # the bars, a line, the axis
    "cnn-fewer-parameters": (_parameters, None, "parameters at 28 x 28"),
    "cosine-semantic": (
        _numbers(
            ("same_letters_other_meaning", "same letters, other meaning"),
            ("other_letters_same_meaning", "other letters, same meaning"),
        ),
        1.0,
        "cosine similarity",
    ),
    "softmax-quadratic": (
        _numbers(("counted_exponent_in_L", "in L"), ("counted_exponent_in_D", "in D")),
        None,
        "exponent of the work",
    ),
    "taylor-linear": (
        _numbers(
            ("counted_exponent_in_L", "in L"), ("counted_exponent_in_V", "in V"), ("counted_exponent_in_M", "in M")
        ),
        None,
        "exponent of the work",
    ),
    "feature-size": (
        _numbers(
            ("sizes_compared", "sizes compared"), ("sizes_wrong", "C and Σ wrong"), ("rival_right", "D^(K-1) right")
        ),
        None,
        "feature maps counted",
    ),
    "heads-equal": (_softmax_weights, None, "softmax weights"),
    "perplexity-is-exp-ce": (
        _numbers(("perplexity", "exp(CE)"), ("of_10_equal_chances", "ten equal chances")),
        None,
        "perplexity",
    ),
    "gcn-rows-normalised": (_row_sums, 1.0, "sum of a row"),
}

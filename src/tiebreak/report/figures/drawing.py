"""How a figure looks: a sheet of fixed size in pixels, drawn by matplotlib, turned into a small inline SVG.

Text and axes take their colours from the page (`currentColor` and CSS variables), so that they follow its dark mode.
Arms have one colour and one marker each, in figures and in tables.
"""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tiebreak.text import printable, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours that differ for colour-blind readers, without yellow and black, which vanish on a page.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#767676")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SWATCHES = (  # the same markers as SVG paths in a box of 12 by 12
    "M6 1a5 5 0 1 0 .01 0z",
    "M1.5 1.5h9v9h-9z",
    "M6 1l5.4 9.6H.6z",
    "M6 .4L11.6 6 6 11.6.4 6z",
    "M6 11L.6 1.4h10.8z",
    "M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z",
    "M3.4 1L6 3.6 8.6 1 11 3.4 8.4 6 11 8.6 8.6 11 6 8.4 3.4 11 1 8.6 3.6 6 1 3.4z",
)
# Colours that stand for the page's own while matplotlib draws.
INK, MUTED, RULE, PAPER = "#010101", "#020202", "#030303", "#040404"
PAGE_COLOURS = {INK: "currentColor", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--paper)"}

TEXT = 12  # px, also the least size of the page's captions
SMALL = 11
LETTER = 6.6  # px, the usual width of one at the usual size
LARGEST_SCALE = 1.25  # a narrow figure may grow by this on a wide screen


@dataclass(frozen=True, kw_only=True)
class Margins:
    """The free room around the axes of a sheet, in pixels."""

    left: int = 52
    right: int = 12
    top: int = 12
    bottom: int = 44


@dataclass(frozen=True, kw_only=True)
class Legend:
    """An arm beside its colour, and what is drawn of it."""

    index: int
    text: str


def colour(index: int) -> str:
    """The colour of the arm at this place in the study."""
    return PALETTE[index % len(PALETTE)]


def _shape(index: int) -> int:
    """More arms than colours: the colours repeat with other markers."""
    return (index + index // len(PALETTE)) % len(MARKERS)


def marker(index: int) -> str:
    """Matplotlib's marker of the arm at this place in the study."""
    return MARKERS[_shape(index)]


def swatch(index: int) -> str:
    """The same marker as an SVG path in a box of 12 by 12."""
    return SWATCHES[_shape(index)]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure as it was drawn, before it became part of a page."""

    name: str
    label: str
    figure: Figure


_DRAWN: ContextVar[list[Drawn] | None] = ContextVar("drawn", default=None)


@contextmanager
def collected() -> Iterator[list[Drawn]]:
    """Every figure that is drawn inside is also kept, so that it can be saved as a file."""
    found: list[Drawn] = []
    token = _DRAWN.set(found)
    try:
        yield found
    finally:
        _DRAWN.reset(token)


@contextmanager
def style() -> Iterator[None]:
    """Everything drawn inside looks like Tiebreak and comes out byte for byte the same each time."""
    import matplotlib

    settings: Any = {  # matplotlib's type is a literal of all its names
        "svg.fonttype": "none",
        "svg.hashsalt": "tiebreak",
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "font.family": ["DejaVu Sans"],
        "font.size": TEXT,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "grid.color": RULE,
        "grid.linewidth": 1,
        "axes.axisbelow": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "xtick.major.pad": 6,
        "ytick.major.pad": 6,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")  # the browser has other fonts
        yield


def sheet(width: int, height: int, margins: Margins) -> tuple[Figure, Axes]:
    """A figure of this size in pixels, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    box = (
        margins.left / width,
        margins.bottom / height,
        (width - margins.left - margins.right) / width,
        (height - margins.top - margins.bottom) / height,
    )
    return figure, figure.add_axes(box)


def window(values: Sequence[float], share: float) -> tuple[float, float]:
    """Limits of an axis: all the values and a share of free room on both sides."""
    low, high = min(values), max(values)
    room = share * (high - low) or abs(low) * share or share
    return low - room, high + room


def fit(text: str, width: float) -> str:
    """The text, cut where it would be wider than `width` pixels, without what cannot be printed."""
    return shorten(printable(text), int(width / LETTER))


def letters_room(labels: Sequence[str]) -> int:
    """The width in pixels that the widest of these labels needs, wide scripts counted double."""
    wide = (sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in label) for label in labels)
    return round(max(wide, default=0) * LETTER)


def to_svg(figure: Figure, *, name: str, label: str) -> str:
    """The figure as an inline SVG called `name` (unique on the page), described to screen readers by `label`."""
    if (every := _DRAWN.get()) is not None:
        every.append(Drawn(name=name, label=printable(label), figure=figure))
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = ElementTree.fromstring(buffer.getvalue())
    box = drawn.attrib["viewBox"]
    root = ElementTree.Element("svg", {"class": "chart", "role": "img", "aria-label": printable(label), "viewBox": box})
    root.set("style", f"max-width: {LARGEST_SCALE * float(box.split()[2]):.0f}px")
    root.extend(kept for child in drawn if (kept := _tidied(child, name)) is not None)
    return ElementTree.tostring(root, encoding="unicode")


def _tidied(element: ElementTree.Element, name: str) -> ElementTree.Element | None:
    """Only what a page needs: no metadata or style of its own, no group names, short numbers, unique references."""
    tag = element.tag.rpartition("}")[2]
    children = [kept for child in element if (kept := _tidied(child, name)) is not None]
    if tag in ("metadata", "style") or (tag in ("g", "defs") and not children):
        return None
    tidied = ElementTree.Element(tag)
    for key, value in element.attrib.items():
        if not (key == "id" and tag == "g") and not value.startswith("rotate(-0 "):
            tidied.set(key.rpartition("}")[2], _attribute(key, value, name))
    tidied.text = element.text if tag == "text" else None
    tidied.extend(children)
    return tidied


def _attribute(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    value = re.sub(r"\s+", " ", value).strip().replace("url(#", f"url(#{name}-")
    if value.startswith("#"):
        return f"#{name}-{value[1:]}"
    if key == "style":
        value = re.sub(r"font-family: [^;]*;? ?|; stroke-linejoin: miter", "", value)
        for stand_in, real in PAGE_COLOURS.items():
            value = value.replace(stand_in, real)
    return re.sub(r"(\.\d\d)\d+", r"\1", value)

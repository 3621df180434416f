"""Every figure of a report as a file: SVG, PDF or PNG, in black on white."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tiebreak.exchange.export_content import ExportContent
from tiebreak.report.figures import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["svg", "pdf", "png"]
PAPER_COLOURS = {drawing.INK: "#000000", drawing.MUTED: "#595959", drawing.RULE: "#dddddd", drawing.PAPER: "#ffffff"}
INLINE = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")
DPI = 300
PARTS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


@dataclass(frozen=True, kw_only=True)
class FigureFile:
    """A figure as a file, and what it shows in words."""

    data: bytes
    label: str


def figure_files(content: ExportContent, kind: Kind) -> dict[str, FigureFile]:
    """The files by name. PNG also has the images that the page holds as pixels."""
    with drawing.collected() as drawn:
        page = content.page()
    files: dict[str, FigureFile] = {}
    with drawing.style():
        for item in drawn:
            if not item.name.startswith("narrow-"):  # the same figure for a phone
                name = re.sub(r"[^A-Za-z0-9_-]+", "-", item.name.replace("wide-", "difference-"))
                add_legend(item.figure, content.names)
                files[f"{name}.{kind}"] = FigureFile(data=_saved(item.figure, kind), label=item.label)
    if kind == "png":
        images = enumerate(_inline_images(page), 1)
        files |= {f"image-{number:03}.png": FigureFile(data=pixels, label="") for number, pixels in images}
    return files


def add_legend(figure: Figure, names: Sequence[str]) -> None:
    """A legend above a figure that draws arms in their colours and does not name them: the page has its own."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    lines = [artist for artist in figure.findobj(Line2D) if isinstance(artist, Line2D)]
    used: dict[str, set[str]] = {}  # the markers of each colour: with many arms the colours repeat with other markers
    for line in lines:
        for part in (line.get_color(), line.get_markeredgecolor()):
            used.setdefault(to_hex(part), set()).update({str(line.get_marker())} - {"None"})
    texts = [artist.get_text() for artist in figure.findobj(Text) if isinstance(artist, Text)]
    shown = [
        place
        for place in range(len(names))
        if (markers := used.get(drawing.colour(place))) is not None
        and (not markers or drawing.marker(place) in markers)
    ]
    if not shown or all(any(names[place][:8] in text for text in texts) for place in shown):
        return
    handles = [
        Line2D([], [], color=drawing.colour(place), marker=drawing.marker(place), linewidth=2,
               label=drawing.fit(names[place], 200))
        for place in shown
    ]  # fmt: skip
    across = max(1, int(figure.get_figwidth() * 72 / 130))
    figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=across, frameon=False)


def _saved(figure: Figure, kind: Kind) -> bytes:
    import matplotlib

    for artist in figure.findobj():
        _recolour(artist)
        box = artist.get_bbox_patch() if hasattr(artist, "get_bbox_patch") else None
        if box is not None:
            _recolour(box)
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
    options: Any = {"svg.fonttype": "path", "pdf.fonttype": 42}  # text that any viewer shows
    with matplotlib.rc_context(options):
        figure.savefig(buffer, format=kind, dpi=DPI if kind == "png" else 72, facecolor="white", metadata=metadata,
                       bbox_inches="tight")  # fmt: skip
    return buffer.getvalue()


def _recolour(artist: Any) -> None:
    """Colours that stand for those of a page become those of paper; transparency stays."""
    from matplotlib.colors import to_hex, to_rgba_array

    for part in PARTS:
        getter, setter = getattr(artist, f"get_{part}", None), getattr(artist, f"set_{part}", None)
        if getter is None or setter is None:
            continue
        found = getter()
        if found is None or (isinstance(found, str) and found in ("none", "auto")):
            continue
        colours = to_rgba_array(found)
        changed = [PAPER_COLOURS.get(to_hex(colour)) for colour in colours]
        if any(changed):
            new = [to_rgba_array(to or to_hex(own), own[3])[0] for to, own in zip(changed, colours, strict=True)]
            setter(new if len(new) > 1 else tuple(new[0]))


def _inline_images(page: str) -> Iterator[bytes]:
    for encoded in dict.fromkeys(INLINE.findall(page)):
        try:
            yield base64.b64decode(encoded, validate=True)
        except binascii.Error:  # not one of ours
            continue

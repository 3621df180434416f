"""How the interval of a comparison narrowed from look to look, with the bounds that decide: one inline SVG."""

from __future__ import annotations

from tiebreak.report.figures import drawing
from tiebreak.report.figures.drawing import INK, MUTED, Margins
from tiebreak.verdict.model import ComparisonResult

NARROW = 358  # px


def looks_path(item: ComparisonResult, *, name: str) -> str:
    """The interval at each look, 0 and the margin; empty for a study that was looked at once."""
    looks = [look for look in item.path if look.low is not None and look.high is not None]
    if len(looks) < 2:
        return ""
    with drawing.style():
        figure, axes = drawing.sheet(NARROW, 200, Margins(left=56, right=14, top=14, bottom=42))
        axes.axhspan(-item.margin, item.margin, color=MUTED, alpha=0.15, linewidth=0)
        axes.axhline(0.0, color=INK, linewidth=1)
        for place, look in enumerate(looks):
            assert look.difference is not None
            assert look.low is not None
            assert look.high is not None
            last = place == len(looks) - 1
            axes.plot([place, place], [look.low, look.high], color=INK if last else MUTED, linewidth=4 if last else 2.5)
            axes.plot(place, look.difference, "o", color=INK if last else MUTED, markersize=6)
        axes.set_xticks(range(len(looks)), [str(look.seeds) for look in looks])
        axes.set_xlim(-0.5, len(looks) - 0.5)
        axes.grid(axis="y")
        axes.set_xlabel("seeds at each look")
        axes.set_ylabel("difference")
        final = looks[-1]
        label = (
            f"The interval of the difference at {len(looks)} looks: {looks[0].low:.3g} to {looks[0].high:.3g} with "
            f"{looks[0].seeds} seeds, {final.low:.3g} to {final.high:.3g} with {final.seeds}."
        )
        return drawing.to_svg(figure, name=name, label=label)

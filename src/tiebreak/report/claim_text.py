"""What is known of a claim, in words: outcome, deciding figure, n, data. For the terminal and for claims.html."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiebreak.report import formatting
from tiebreak.text import number_of
from tiebreak.verdict.docket import DocketEntry, Figure, PublishedFigure

if TYPE_CHECKING:
    from tiebreak.theory.claims import ClaimStatus

OPEN = "nothing kept decides it"


def outcome(status: ClaimStatus) -> str:
    """Holds, fails or undecided; a hint says which way it points, and whether others point the other way."""
    best = status.best
    if best is None or not best.hint:
        part = status.outcome is not None and "left_open" in status.outcome.evidence
        return f"{status.verdict}, part open" if part else status.verdict
    if best.outcome == "undecided":
        return "undecided (a hint)"
    return f"hint: {best.outcome}{' (mixed)' if status.mixed else ''}"


def figure(item: Figure) -> str:
    """A deciding figure with its 95 % interval.

    >>> figure(Figure(what="x", value=0.02, low=0.01, high=0.03, margin=0.005, verdict="a", expect="a"))
    'x +0.020 (+0.010 to +0.030)'
    """
    if item.value is None:
        return f"{item.what} {formatting.MISSING}"
    number = formatting.signed_minus if item.none == 0 else formatting.score
    if item.low is None or item.high is None:
        return f"{item.what} {number(item.value)}"
    return f"{item.what} {number(item.value)} ({formatting.open_interval(item.low, item.high, number)})"


def leans(entry: DocketEntry, best: DocketEntry | None = None) -> str:
    """What a result says of its claim; where an identity decides the claim, what it measured.

    Where it compares something else than the `best` result does, also what.
    """
    said = figure(entry.figures[0]) if entry.quality else entry.outcome
    if not entry.quality and best is not None and _asks_otherwise(entry, best):
        said = f"{said}, {figure(_deciding(entry))}"
    return f"hint: {said}" if entry.hint else said


def training(entry: DocketEntry) -> str:
    """How long its runs were trained; empty of a benchmark."""
    return number_of(entry.epochs, "epoch") if entry.epochs else ""


def _asks_otherwise(entry: DocketEntry, best: DocketEntry) -> bool:
    """Whether two results compare something else, or fail to be the same in two directions."""
    if best.figures[0].what != entry.figures[0].what:
        return True
    return {_deciding(entry).verdict, _deciding(best).verdict} == {"a", "b"} and entry.outcome == best.outcome


def _deciding(entry: DocketEntry) -> Figure:
    """The figure that the outcome rests on: of a claim that fails, one that went the other way."""

    def support(item: Figure) -> int:
        return 2 if item.verdict == item.expect else int(item.verdict == "undecided")

    return min(entry.figures, key=support)


def meaning(entry: DocketEntry) -> str:
    """What a result measures of a claim that an identity decides."""
    return f"what it means for {'speed' if entry.timed else 'quality'}"


def basis(entry: DocketEntry) -> str:
    """How many replicates, and on which data."""
    unit = entry.unit if entry.n != 1 else entry.unit.replace("seeds", "seed").replace("rounds", "round")
    return f"n = {entry.n} {unit}, {entry.data}"


def origin(entry: DocketEntry) -> str:
    """Protocol, device, date and file of a result."""
    epochs = f", {each}" if (each := training(entry)) else ""
    return f"{entry.protocol}{epochs}; {entry.device}, {entry.date}; {entry.file}, sha256 {entry.sha256[:12]}"


def to_decide(status: ClaimStatus) -> str:
    """What would decide an open claim, without the command; empty where it is decided or nothing could."""
    if status.decided or status.command is None:
        return ""
    return f"to decide it ({status.terms})" if status.terms else "to decide it"


def percentile(item: PublishedFigure) -> str:
    """Where a published figure lies in our distribution of single runs."""
    return f"{percentile_text(item.percentile)}, estimated from {number_of(item.n, 'run')}"


def percentile_text(value: float | None) -> str:
    """A percentile as an ordinal; never 0 or 100.

    >>> percentile_text(6.4), percentile_text(0.02), percentile_text(99.95), percentile_text(None)
    ('6th percentile', 'below the 1st percentile', 'above the 99th percentile', 'too few runs')
    """
    if value is None:
        return "too few runs"
    if value < 0.5:
        return "below the 1st percentile"
    if value >= 99.5:
        return "above the 99th percentile"
    whole = max(1, min(99, round(value)))
    ending = "th" if whole in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(whole % 10, "th")
    return f"{whole}{ending} percentile"

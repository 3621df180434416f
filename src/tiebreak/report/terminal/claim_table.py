"""The output of `tiebreak claims`: each claim with its outcome, the deciding figure, n, data and the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tiebreak.report import claim_text, formatting
from tiebreak.text import listed, number_of, printable

if TYPE_CHECKING:
    from tiebreak.theory.claims import ClaimStatus

COLOURS = {"holds": "bold green", "fails": "bold red", "undecided": "bold yellow", "hint": "yellow"}
COUNTED = {"holds": "hold", "fails": "fail", "hint": "with a hint"}  # all others as they are
MOST_FIGURES = 4


def print_claims(console: Console, found: Sequence[ClaimStatus]) -> None:
    """A block for each claim, then how many of each, and what the outcomes mean."""
    console.print(Text(formatting.reports_line(formatting.REPORTS)))
    for each in found:
        console.print()
        _print_claim(console, each)
    console.print()
    by_identity = [each for each in found if each.outcome is not None]
    by_result = [each for each in found if each.outcome is None]
    console.print(
        Text(
            f"{number_of(len(found), 'claim')}: {len(by_identity)} by identities computed now "
            f"({_counts(by_identity)}), {len(by_result)} by results ({_counts(by_result)})"
        )
    )
    if any(each.best is not None and each.best.hint for each in found):
        console.print(Text(formatting.HINT))
    if any(each.mixed for each in found):
        console.print(Text(formatting.MIXED))


def _print_claim(console: Console, each: ClaimStatus) -> None:
    entry, outcome = each.entry, claim_text.outcome(each)
    console.print(
        Text.assemble(
            (f"{entry.id:<26}", "bold"),
            (f"{outcome:<20}", COLOURS[each.verdict]),
            (formatting.sources(entry.source), "dim"),
        )
    )
    _indented(console, entry.text, "dim")
    if each.outcome is not None:
        _indented(console, f"computed now: {each.outcome.sentence}")
        if "left_open" in each.outcome.evidence:
            _indented(console, f"left open: {each.outcome.evidence['left_open']}")
    elif each.best is None:
        _indented(console, claim_text.OPEN)
    for result in each.entries[:1]:
        if result.quality:
            _indented(console, f"{claim_text.meaning(result)}:")
        for figure in result.figures[:MOST_FIGURES]:
            _indented(console, claim_text.figure(figure))
        if len(result.figures) > MOST_FIGURES:
            _indented(console, f"and {number_of(len(result.figures) - MOST_FIGURES, 'more figure')}")
        _indented(console, f"{claim_text.basis(result)}{f', your {result.file}' if result.own else ''}")
        if result.limits:
            _indented(console, f"a hint: {result.limits}")
        if result.note:
            _indented(console, result.note)
    for other in each.entries[1:]:
        said = claim_text.leans(other, each.entries[0])
        whose = f"your {other.file}" if other.own else ""
        where = ", ".join(filter(None, [other.data, claim_text.training(other), f"n = {other.n}", whose]))
        _indented(console, f"also {where}: {said}", "dim")
    if how := claim_text.to_decide(each):
        _indented(console, f"{how}:")
        console.print(Text(f"  {each.command}"), no_wrap=True, overflow="ignore", crop=False)


def _indented(console: Console, text: str, style: str = "") -> None:
    console.print(Padding(Text(printable(text), style=style), (0, 0, 0, 2), expand=False))


def _counts(some: Sequence[ClaimStatus]) -> str:
    counts = Counter[str](each.verdict for each in some)
    order = ("holds", "fails", "hint", "undecided")
    return listed([f"{counts[verdict]} {COUNTED.get(verdict, verdict)}" for verdict in order if counts[verdict]])

"""The output of `tiebreak claims`: each claim with its verdict, and below the table why some fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiebreak.report import formatting
from tiebreak.text import listed, number_of, printable

if TYPE_CHECKING:
    from tiebreak.theory.claims import ClaimStatus

COLOURS = {"holds": "bold green", "fails": "bold red", "undecided": "bold yellow"}
COUNTED = {"holds": "hold", "fails": "fail", "hint": "with a hint"}  # all others as they are


def print_claims(console: Console, found: Sequence[ClaimStatus]) -> None:
    """A table, the sentences of the identities that do not hold, how many of each, and what decides the others."""
    console.print(Text(formatting.reports_line(formatting.REPORTS)))
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("id\nsource", no_wrap=True)
    table.add_column("claim", ratio=1, overflow="fold")
    table.add_column("verdict now", max_width=22, overflow="fold")
    for each in found:
        entry = each.entry
        name = Text.assemble((entry.id, "bold"), "\n", (formatting.sources(entry.source), "dim"))
        table.add_row(name, Text(printable(entry.text)), _verdict(each))
    console.print(table)
    for each in found:
        if each.outcome is not None and each.verdict != "holds":
            console.print()
            console.print(Text.assemble((each.entry.id, "bold"), " ", (each.verdict, COLOURS[each.verdict]), ":"))
            console.print(Text(printable(each.outcome.sentence)))
        elif each.outcome is None and each.studied is not None:
            console.print()
            console.print(Text.assemble((each.entry.id, "bold"), f" by {printable(each.studied.folder)}:"))
            console.print(Text(printable(each.studied.why)))
        elif each.outcome is not None and "left_open" in each.outcome.evidence:
            console.print()
            console.print(
                Text.assemble((each.entry.id, "bold"), " leaves open ", str(each.outcome.evidence["left_open"]))
            )
    console.print()
    by_identity = [each for each in found if each.outcome is not None]
    by_study = [each for each in found if each.outcome is None]
    console.print(
        Text(
            f"{number_of(len(found), 'claim')}: {len(by_identity)} by identities computed now "
            f"({_counts(by_identity)}), {len(by_study)} by studies ({_counts(by_study)})"
        )
    )
    both = [each for each in by_identity if each.entry.study]
    if both:
        studies = [f"{each.entry.study} ({_how(each)})" for each in both]
        console.print(Text(f"what they mean for quality: {listed(studies)}"))


def _counts(some: Sequence[ClaimStatus]) -> str:
    counts = Counter[str](each.verdict for each in some)
    order = ("holds", "fails", "undecided", "hint", "not run", "not built")
    return listed([f"{counts[verdict]} {COUNTED.get(verdict, verdict)}" for verdict in order if counts[verdict]])


def _verdict(each: ClaimStatus) -> Text:
    if each.outcome is not None:
        partly = ", see below" if "left_open" in each.outcome.evidence else ""
        return Text.assemble((each.verdict, COLOURS[each.verdict]), partly)
    if each.studied is not None:
        return Text(printable(each.studied.words), style=COLOURS.get(each.verdict, ""))
    where = " in a clone" if each.entry.benchmark else ""  # benchmarks are not installed
    return Text(f"run `{each.command}`{where}" if each.command else "study not built yet")


def _how(each: ClaimStatus) -> str:
    if each.studied is not None:
        return f"{printable(each.studied.folder)}: {printable(each.studied.words)}"
    return f"`{each.command}`" if each.command else "study not built yet"

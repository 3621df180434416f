from __future__ import annotations

import io

from rich.console import Console

from tiebreak.report.terminal.claim_table import print_claims
from tiebreak.theory.claims import ClaimStatus, Entry, Outcome

HOLDS = ClaimStatus(
    Entry("linear", "it is linear", ("R0", "R3"), identity=True), "holds", Outcome("linear", "holds", "yes")
)
FAILS = ClaimStatus(
    Entry("cheap", "it is [bold]cheap\x1b[31m", ("R1",), identity=True, study="pooling"),
    "fails",
    Outcome("cheap", "fails", "it costs twice as much"),
    command="tiebreak run pooling",
)
OPEN = ClaimStatus(
    Entry("partly", "it holds here", ("R2",), identity=True),
    "holds",
    Outcome("partly", "holds", "yes", {"left_open": "the case D = 1"}),
)
STUDY = ClaimStatus(
    Entry("better", "it is better", ("R4",), study="pooling"), "not run", command="tiebreak run pooling"
)
NOT_BUILT = ClaimStatus(Entry("faster", "it is faster", ("R4",), study="speed"), "not built")


def printed(*standings: ClaimStatus) -> str:
    file = io.StringIO()
    print_claims(Console(file=file, width=80, highlight=False), standings)
    return file.getvalue()


def test_every_claim_stands_with_its_report_and_verdict() -> None:
    text = printed(HOLDS, FAILS, STUDY, NOT_BUILT)
    assert "reports R0 and R3" in text
    assert "report R1" in text
    assert "`tiebreak run pooling`" in " ".join(text.split())
    assert "not built" in text
    assert max(map(len, text.splitlines())) <= 80


def test_why_a_claim_fails_and_what_it_leaves_open_stand_below() -> None:
    below = printed(HOLDS, FAILS, OPEN).partition("verdict now")[2].split("\n\n")
    assert any("cheap" in part and "twice as much" in part for part in below[1:])
    assert any("partly" in part and "the case D = 1" in part for part in below[1:])
    assert not any("linear" in part for part in below[1:-1])


def test_the_counts_are_of_all_verdicts() -> None:
    line = " ".join(printed(HOLDS, FAILS, OPEN, STUDY, NOT_BUILT).split())
    assert "5 claims: 3 by identities" in line
    assert "2 hold and 1 fail" in line
    assert "1 not run and 1 not built" in line


def test_text_cannot_drive_the_terminal() -> None:
    text = printed(FAILS)
    assert "\x1b" not in text
    assert "[bold]" in text

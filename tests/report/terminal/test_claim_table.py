from __future__ import annotations

import io

from rich.console import Console

from tiebreak.report.terminal.claim_table import print_claims
from tiebreak.theory.claims import ClaimStatus, Entry, Outcome
from tiebreak.verdict.docket import DocketEntry, Figure

FIGURE = Figure(what="accuracy: a-1 − b", value=-0.02, low=-0.03, high=-0.01, margin=0.005, verdict="b", expect="a")
RESULT = DocketEntry(
    claim="better", outcome="fails", hint=True, limits="mnist5k stands in for octmnist", figures=(FIGURE,), n=10,
    unit="paired seeds", data="mnist5k", protocol="audited", epochs=3, device="cpu", date="2026-11-16",
    command="tiebreak run pooling --quick", file="x.json", sha256="0" * 64,
)  # fmt: skip
HOLDS = ClaimStatus(
    Entry("linear", "it is linear", ("R0", "R3"), identity=True), "holds", Outcome("linear", "holds", "yes")
)
FAILS = ClaimStatus(
    Entry("cheap", "it is [bold]cheap\x1b[31m", ("R1",), identity=True, study="pooling"),
    "fails",
    Outcome("cheap", "fails", "it costs twice as much"),
    command="tiebreak run pooling",
)
PARTLY = ClaimStatus(
    Entry("partly", "it holds here", ("R2",), identity=True),
    "holds",
    Outcome("partly", "holds", "yes", {"left_open": "the case D = 1"}),
)
BETTER = Entry("better", "it is better", ("R4",), study="pooling")
HINT = ClaimStatus(BETTER, "hint", None, (RESULT,), "tiebreak run pooling", "octmnist")
NOTHING = ClaimStatus(Entry("faster", "it is faster", ("R4",)), "undecided", command="tiebreak run " + "x" * 90)


def printed(*standings: ClaimStatus) -> str:
    file = io.StringIO()
    print_claims(Console(file=file, width=80, highlight=False), standings)
    return file.getvalue()


def test_every_claim_stands_with_its_report_outcome_and_reason() -> None:
    text = printed(HOLDS, FAILS, PARTLY)
    assert "reports R0 and R3" in text
    assert "report R1" in text
    assert "it costs twice as much" in text
    assert "the case D = 1" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_hint_says_its_figure_n_data_limits_and_what_decides() -> None:
    text = printed(HINT)
    for part in ("hint: fails", "a-1 − b −0.020 (−0.030 to −0.010)", "n = 10", "mnist5k stands in", "(octmnist)"):
        assert part in text
    assert "\n  tiebreak run pooling\n" in text


def test_nothing_known_is_undecided_with_an_unbroken_command() -> None:
    text = printed(NOTHING)
    assert "undecided" in text
    assert f"tiebreak run {'x' * 90}" in text


def test_the_counts_are_of_all_verdicts() -> None:
    line = " ".join(printed(HOLDS, FAILS, PARTLY, HINT, NOTHING).split())
    assert "5 claims: 3 by identities" in line
    assert "2 hold and 1 fail" in line
    assert "1 with a hint and 1 undecided" in line


def test_text_cannot_drive_the_terminal() -> None:
    text = printed(FAILS)
    assert "\x1b" not in text
    assert "[bold]" in text

"""`tiebreak cost` and `tiebreak claims`: what the commands pass on; tests/theory tests what they compute."""

from __future__ import annotations

import json
from pathlib import Path

from support.cli_fixtures import Tiebreak, one_line
from tiebreak.theory.claims import LEDGER


def test_the_options_of_cost_reach_it(tiebreak: Tiebreak, tmp_path: Path) -> None:
    figure = tmp_path / "plot.svg"
    done = tiebreak(
        "cost", "linear", "--vary", "I=8..16", "--set", "O=3", "--against", "linear", "--no-measure", "--out", figure
    )
    assert (done.code, done.err) == (0, "")
    shown = one_line(done.out)
    assert "O = 3 (outputs)" in shown
    assert "exponent in I" in shown
    assert str(figure) in done.out
    assert figure.is_file()


def test_claims_for_programs_are_json(tiebreak: Tiebreak) -> None:
    done = tiebreak("claims", "--json")
    assert (done.code, done.err) == (0, "")
    assert [row["id"] for row in json.loads(done.out)] == [entry.id for entry in LEDGER]

"""`tiebreak cost`: what the command passes on; tests/theory tests what it computes."""

from __future__ import annotations

from pathlib import Path

from support.cli_fixtures import Tiebreak, one_line


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

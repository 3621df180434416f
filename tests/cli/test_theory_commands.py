"""`tiebreak cost` and `tiebreak claims`: what the commands pass on; tests/theory tests what they compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_fixtures import Tiebreak, one_line
from support.damage import graph_study, run_here
from tiebreak.theory import identities
from tiebreak.theory.claims import LEDGER, Outcome

DECIDED = Outcome("any", "holds", "it does")


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


@pytest.mark.usefixtures("here")
def test_claims_that_a_finished_study_decides_are_decided(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = {"id": "cnn-beats-mlp", "text": "CNNs beat fully connected nets", "comparison": "gcn vs mlp"}
    study = graph_study(tmp_path / "mine.py", name="spatial-structure", claims=[claim])
    run_here(study, tmp_path / "runs" / "any-name")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(identities, "CHECKS", {name: lambda: DECIDED for name in identities.CHECKS})
    rows = {row["id"]: row for row in json.loads(tiebreak("claims", "--json").out)}
    assert rows["cnn-beats-mlp"]["verdict"] == "undecided"
    assert rows["cnn-beats-mlp"]["studied"]["folder"] == "runs/any-name"
    assert rows["pool-beats-stride"]["verdict"] == "not run"
    shown = one_line(tiebreak("claims").out)
    assert "cnn-beats-mlp by runs/any-name" in shown
    assert "1 undecided" in shown


def test_claims_without_a_runs_folder_are_none_of_them_run(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(identities, "CHECKS", {name: lambda: DECIDED for name in identities.CHECKS})
    rows = json.loads(tiebreak("claims", "--json").out)
    assert not any("studied" in row for row in rows)

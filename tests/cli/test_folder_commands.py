"""`tiebreak list` and `tiebreak prune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_fixtures import Tiebreak, one_line
from support.damage import graph_study, run_here


@pytest.fixture(name="results")
def _results(here: None, tmp_path: Path) -> Path:
    """A finished study with its own designs, in `runs`: two settings of which one is chosen, two seeds."""
    study = graph_study(tmp_path / "mine.py", seeds=2, fixed={}, grid={"lr": [0.1, 0.0001]})
    run_here(study, tmp_path / "runs" / "graphs")
    return tmp_path / "runs" / "graphs"


def test_studies_that_were_run_are_listed(
    results: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tiebreak("list")
    assert (done.code, done.err) == (0, "")
    for part in ("runs/graphs", "Do the edges help?", "8 of 8 runs", "1 study"):
        assert part in one_line(done.out)
    (row,) = json.loads(tiebreak("list", results.parent, "--json").out)
    assert row["study"] == "graphs"
    (tmp_path / "empty").mkdir()
    assert "no results folder" in tiebreak("list", tmp_path / "empty").out
    assert tiebreak("list", tmp_path / "gone").code == 2

"""`tiebreak list` and `tiebreak prune`."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

import pytest

from support.cli_fixtures import Tiebreak, one_line
from support.damage import graph_study, run_here
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.store import Store
from tiebreak.study.schema import Study


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


def test_prune_keeps_the_answer_and_the_chosen_runs(results: Path, tiebreak: Tiebreak) -> None:
    before = tiebreak("verdict", results, "--json").out
    done = tiebreak("prune", results, "--yes")
    assert done.code == 0
    assert "4 checkpoints" in done.out
    assert len([*(results / CHECKPOINTS).iterdir()]) == 4, "two arms, two seeds"
    assert tiebreak("verdict", results, "--json").out == before
    checked = tiebreak("check", results)
    assert (checked.code, checked.err) == (0, "")
    assert "4 checkpoints removed by `tiebreak prune`" in checked.out
    assert tiebreak("use", results, "3", "--arm", "mlp", "--seed", "1").code == 0
    assert "nothing to remove" in tiebreak("prune", results, "--yes").out


def test_prune_asks_first(results: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, code, word in (("n\n", 0, "nothing removed"), ("", 2, "--yes")):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        done = tiebreak("prune", results)
        assert done.code == code
        assert word in done.out + done.err
    assert len([*(results / CHECKPOINTS).iterdir()]) == 8


def test_prune_says_what_use_can_no_longer_do(results: Path, tiebreak: Tiebreak) -> None:
    assert "--seed" in tiebreak("prune", results, "--keep", "best", "--yes").out
    assert len([*(results / CHECKPOINTS).iterdir()]) == 2
    assert tiebreak("use", results, "3", "--arm", "mlp").code == 0
    assert "`tiebreak use`" in tiebreak("prune", results, "--keep", "none", "--yes").out
    refused = tiebreak("use", results, "3", "--arm", "mlp")
    assert refused.code == 2
    assert "tiebreak prune" in refused.err


def test_after_prune_more_seeds_train_the_new_runs_only_and_more_epochs_say_what_begins_again(
    results: Path, tiebreak: Tiebreak, tmp_path: Path
) -> None:
    tiebreak("prune", results, "--yes")
    study = Study.load(str(results / "study.toml"))
    assert not any("tiebreak prune" in line for line in run_here(study.changed(seeds=3), results))
    with closing(Store.open(results)) as store:
        assert len(store.records().runs) == 12
    lines = run_here(study.changed(seeds=3, epochs=3), results)
    assert any("4 runs" in line and "tiebreak prune" in line for line in lines)
    assert tiebreak("check", results).code == 0

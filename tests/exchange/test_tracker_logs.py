"""Runs handed over to trackers, and read again by our own readers: `make extras-test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import sample_report
from tiebreak.errors import TiebreakError
from tiebreak.exchange.logged_runs import LoggedRun, logged_runs
from tiebreak.exchange.pick import Columns
from tiebreak.exchange.score_sources import read_score_table
from tiebreak.exchange.tracker_logs import Tracker, log_runs


def some_runs() -> list[LoggedRun]:
    whole = sample_report.complete()
    every = logged_runs(whole.study, whole.plan, whole.records)
    return [run for run in every if run.parameters["lr"] == 0.1 and run.parameters["seed"] in (0, 1)]


def log(tracker: Tracker, out: Path) -> str:
    return log_runs(some_runs(), "pooling", tracker, out, lambda done, total: None)


def expected() -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for run in some_runs():
        found.setdefault(str(run.parameters["arm"]), {})[int(run.parameters["seed"])] = run.final["test_accuracy"]
    return found


def test_a_folder_with_content_and_a_study_without_runs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(TiebreakError, match="already there"):
        log("mlflow", tmp_path)
    with pytest.raises(TiebreakError, match="no run has ended"):
        log_runs([], "pooling", "mlflow", tmp_path / "new", lambda done, total: None)
    assert not (tmp_path / "new").exists()


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tracker", ["tensorboard", "mlflow"])
def test_what_was_logged_is_read_back(tracker: Tracker, tmp_path: Path) -> None:
    pytest.importorskip(tracker)
    look = log(tracker, tmp_path / "log")
    assert tracker in look
    path = tmp_path / "log" / "mlflow.db" if tracker == "mlflow" else tmp_path / "log"
    found = read_score_table(path, Columns(arm="arm", seed="seed", score="test_accuracy"))
    assert found.sets[""] == {arm: pytest.approx(scores, rel=1e-6) for arm, scores in expected().items()}


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_get_offline_runs(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    assert "wandb sync" in log("wandb-offline", tmp_path / "log")
    assert len(list((tmp_path / "log" / "wandb").glob("offline-run-*/*.wandb"))) == len(some_runs())

from __future__ import annotations

from support import sample_report
from tiebreak.exchange.logged_runs import logged_runs


def test_every_run_that_ended_has_its_parameters_epochs_and_test_scores() -> None:
    whole = sample_report.partial()
    runs = list(logged_runs(whole.study, whole.plan, whole.records))
    assert len(runs) == sum(identity in whole.records.runs for arm in whole.plan.arms for identity in arm.runs.values())
    assert {run.status for run in runs} == {"done", "diverged", "failed"}
    run = next(run for run in runs if run.status == "done" and run.parameters["arm"] == "pool")
    assert run.name == "pool lr=0.1 seed 0"
    assert (run.parameters["seed"], run.parameters["lr"]) == (0, 0.1)
    assert sorted(run.epochs) == [1, 2, 3]
    assert set(run.final) == {"test_accuracy", "test_loss"}
    failed = next(run for run in runs if run.status == "failed")
    assert "out of memory" in failed.tags["tiebreak.reason"]
    assert failed.final == {}

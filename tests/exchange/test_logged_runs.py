from __future__ import annotations

from pathlib import Path

from support import own_program, sample_report
from tiebreak.exchange.logged_runs import logged_runs
from tiebreak.plan.planner import make_plan
from tiebreak.results.record import EpochRecord, FinalRecord, Records, RunRecord


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


def test_a_program_has_all_its_epochs_and_its_own_values(tmp_path: Path) -> None:
    command = [*own_program.COMMAND, "{lr}"]
    study = own_program.study(tmp_path, grid={"lr": [0.1]}, program={"command": command, "epochs": "metrics.jsonl"})
    plan = make_plan(study, None)
    identity, run = next(iter(plan.runs.items()))
    losses = {1: 1.0, 2: 0.5}
    epochs = {
        number: EpochRecord(trajectory=run.trajectory, epoch=number, metrics={"train_loss": loss}, seconds={})
        for number, loss in losses.items()
    }
    scores = {"accuracy": 0.5, "val_accuracy": 0.6}
    final = FinalRecord(identity=identity, evaluation="default", metrics=scores, outcomes={}, seconds=0.0)
    ended = RunRecord(identity=identity, trajectory=run.trajectory, status="done", epoch=2, provenance={})
    records = Records(runs={identity: ended}, epochs={run.trajectory: epochs}, finals={identity: {"default": final}})
    (logged,) = logged_runs(study, plan, records)
    assert logged.epochs == {number: {"train_loss": loss} for number, loss in losses.items()}
    assert logged.final == {"test_accuracy": 0.5, "final_val_accuracy": 0.6}
    assert logged.parameters == {"study": "toy", "arm": "high", "seed": 0, "good": 0.9, "lr": 0.1}

"""Results folders made by hand, to be watched: any number of runs ended, none trained."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from support import hand_made
from tiebreak.plan.runs import PLAN_FILE, Plan, Run
from tiebreak.results.manifest import STUDY_FILE, write_files
from tiebreak.results.record import EpochRecord, FinalRecord, RunRecord, Status
from tiebreak.results.store import Store
from tiebreak.study import parsing
from tiebreak.study.schema import Study


def make_folder(folder: Path, *, ended: int = 0, **changes: Any) -> Plan:
    """A results folder of the study made by hand, in which the first runs of every arm and setting have ended."""
    study = hand_made.study(**changes)
    folder.mkdir(parents=True, exist_ok=True)
    plan = hand_made.plan(study)
    write_files(folder, {STUDY_FILE: parsing.to_toml(study), PLAN_FILE: plan.model_dump_json() + "\n"})
    end_runs(folder, [run for run in plan.runs.values() if run.seed < ended])
    return plan


def grow(folder: Path, study: Study) -> Plan:
    """The same folder with another version of its study, such as one with more seeds."""
    plan = hand_made.plan(study)
    write_files(folder, {STUDY_FILE: parsing.to_toml(study), PLAN_FILE: plan.model_dump_json() + "\n"})
    return plan


def end_runs(folder: Path, runs: Iterable[Run], status: Status = "done", reason: str = "") -> None:
    """Store that these runs have ended, with all their epochs and made-up scores."""
    with closing(Store.create(folder)) as store, store.transaction():
        for run in runs:
            add_run(store, run, status, reason)


def add_epochs(folder: Path, runs: int) -> None:
    """The next epoch of the first runs of the study that have not ended."""
    with closing(Store.create(folder)) as store:
        state = store.training_state()
        waiting = [run for run in Plan.read(folder).runs.values() if run.identity not in state.runs]
        with store.transaction():
            for run in waiting[:runs]:
                add_epoch(store, run, len(state.epochs.get(run.trajectory, ())) + 1)


def add_run(store: Store, run: Run, status: Status = "done", reason: str = "") -> None:
    """The end of a run: cnn-pool is better by 0.05, and seeds differ."""
    score = 0.8 + 0.05 * (run.design == "cnn-pool") + 0.001 * (run.seed * 7 % 5) - 0.1 * (run.setting["lr"] == 0.1)
    for epoch in range(1, run.epochs + 1):
        add_epoch(store, run, epoch, score)
    record = RunRecord(identity=run.identity, trajectory=run.trajectory, status=status, epoch=run.epochs, reason=reason)
    store.add_run(record)
    if status == "done":
        metrics = {"accuracy": score, "loss": 1 - score}
        final = FinalRecord(identity=run.identity, evaluation="default", metrics=metrics, outcomes={}, seconds=1.0)
        store.add_final(final)


def add_epoch(store: Store, run: Run, epoch: int, score: float = 0.5) -> None:
    """One epoch of a run."""
    metrics = {"train_loss": 1 / epoch, "val_accuracy": score, "val_loss": 1 - score}
    seconds = {"train": 1.0, "evaluate": 0.1, "checkpoint": 0.01}
    store.add_epoch(EpochRecord(trajectory=run.trajectory, epoch=epoch, metrics=metrics, seconds=seconds))

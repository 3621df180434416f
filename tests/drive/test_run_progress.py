"""How far each run is, from the messages of training."""

from __future__ import annotations

from tiebreak.drive.messages import EpochDone, Note, PendingRun, Progress, RunEnded, TrainingStarted
from tiebreak.drive.run_progress import RunProgress
from tiebreak.results.record import EpochRecord, RunRecord


def pending(cohort: str, path: str, *, epochs: int = 4, done: int = 0, cost: float = 1.0) -> PendingRun:
    return PendingRun(label=path, cohort=cohort, trajectory=path, epochs=epochs, done=done, strategy="loop", cost=cost)


def epoch(number: int, *paths: str) -> EpochDone:
    records = [EpochRecord(trajectory=path, epoch=number, metrics={}, seconds={"train": 2.0}) for path in paths]
    return EpochDone(records=tuple(records), checkpoints=())


def test_rates_and_epochs_are_shared_among_runs_that_are_trained_together() -> None:
    progress = RunProgress()
    runs = {"a": pending("cnn", "one"), "b": pending("cnn", "two"), "c": pending("mlp", "three")}
    assert not progress.on_message(TrainingStarted(runs=runs, steps=10, stored=0, workers=1))
    assert not progress.on_message(Note(text="nothing has changed"))
    assert progress.on_message(epoch(1, "one", "two", "unknown"))
    assert progress.epochs == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert sum(progress.rates.values()) == 2 * 10 / 6.0
    assert progress.cohorts() == {"cnn": ["a", "b"]}
    assert progress.on_message(Progress(identities=("c",), epochs=0.5, rate=3.0))
    assert progress.share() == 2.5 / 12
    assert progress.on_message(RunEnded(record=RunRecord(identity="a", trajectory="one", status="failed", epoch=1)))
    assert (progress.ended, progress.epochs["a"], "a" in progress.rates) == ({"a": "failed"}, 4.0, False)


def test_an_epoch_belongs_to_the_run_of_its_path_that_is_trained() -> None:
    progress = RunProgress()
    runs = {"short": pending("cnn", "both", epochs=2), "long": pending("cnn", "both", epochs=4)}
    progress.on_message(TrainingStarted(runs=runs, steps=1, stored=0, workers=1))
    for number in (1, 2):
        progress.on_message(epoch(number, "both"))
    assert sorted(progress.epochs.values()) == [0, 2]


def test_the_share_counts_what_is_left_by_its_cost() -> None:
    progress = RunProgress()
    runs = {"a": pending("cnn", "one", done=2, cost=3.0), "b": pending("mlp", "two")}
    progress.on_message(TrainingStarted(runs=runs, steps=1, stored=0, workers=1))
    progress.on_message(epoch(3, "one"))
    assert progress.share() == 3.0 / (2 * 3.0 + 4)
    assert RunProgress().share() == 1.0  # nothing is left of nothing

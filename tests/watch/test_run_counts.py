"""How far a study is: by cohort, in all, and which runs went wrong."""

from __future__ import annotations

import pytest

from support import hand_made
from tiebreak.results.live_progress import LiveCohort, LiveProgress
from tiebreak.results.record import EpochRecord, Records
from tiebreak.watch import run_counts
from tiebreak.watch.run_counts import cohort_runs, count_cohorts, progress_of, shown_cohorts, troubles_of

LIVE = LiveProgress(
    process=1,
    started=0.0,
    host="here",
    folder=1,
    updated=0.0,
    seconds_left=90.0,
    rate=12.0,
    cohorts=(LiveCohort(name="cnn-pool", epochs_left=5.5, seconds_left=30.0),),
)


def example() -> tuple[hand_made.Book, Records]:
    """Of 6 runs of each cohort: one done, one diverged, one failed; one run has an epoch."""
    study = hand_made.study(seeds=3, epochs=2)
    plan = hand_made.plan(study)
    book = hand_made.Book(plan)
    book.done("pool", {"lr": 0.1}, 0, val=0.5, test=0.5, losses=[1.0, 0.5])
    book.ended("pool", {"lr": 0.1}, 1, {"status": "diverged", "reason": "loss is nan"})
    book.ended("pool", {"lr": 0.1}, 2, {"status": "failed", "reason": "x" * 2_000 + "\n<b>"})
    run = plan.runs[plan.arm("strided").run({"lr": 0.1}, 0)]
    metrics = {"train_loss": 1.0, "val_accuracy": 0.5, "val_loss": 0.5}
    book.epochs[run.trajectory] = {1: EpochRecord(trajectory=run.trajectory, epoch=1, metrics=metrics, seconds={})}
    return book, Records(epochs=book.epochs, runs=book.runs, finals=book.finals)


def test_runs_and_epochs_are_counted_by_cohort_and_in_all() -> None:
    book, records = example()
    counts = count_cohorts(cohort_runs(book.plan), records, LIVE)
    pool, strided = shown_cohorts(counts)
    assert pool == {
        "name": "cnn-pool", "runs": 6, "done": 1, "failed": 1, "diverged": 1, "epochs_done": 6.5, "epochs": 12,
        "seconds_left": 30.0,
    }  # fmt: skip
    assert (strided["done"], strided["epochs_done"], strided["seconds_left"]) == (0, 1.0, None)
    assert progress_of(counts, LIVE) == {
        "runs_done": 3, "runs": 12, "epochs_done": 7.5, "epochs": 24, "seconds_left": 90.0, "rate": 12.0
    }  # fmt: skip
    assert progress_of(counts, None)["seconds_left"] is None


def test_many_cohorts_are_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_counts, "MOST_COHORTS", 1)
    book, records = example()
    first, rest = shown_cohorts(count_cohorts(cohort_runs(book.plan), records, None))
    assert first["name"] == "cnn-pool"
    assert (rest["name"], rest["runs"], rest["epochs"]) == ("1 more", 6, 12)


def test_what_went_wrong_is_told_in_one_line_each() -> None:
    book, records = example()
    diverged, failed = troubles_of(book.plan, records)
    assert diverged == {"run": "cnn-pool lr=0.1 seed 1", "status": "diverged", "epoch": 1, "reason": "loss is nan"}
    assert failed["status"] == "failed"
    assert len(failed["reason"]) <= run_counts.MOST_REASON
    assert "\n" not in failed["reason"]

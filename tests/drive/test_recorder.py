from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.made_up import ended, epoch_done, state
from support.small_study import one_run, one_thread, write_data
from tiebreak.drive.messages import Abort, EpochDone, Note, StrategyMeasured
from tiebreak.drive.recorder import record, resumable
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.record import Choice
from tiebreak.results.store import Store


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path)) as store:
        yield store


def kept_epochs(store: Store, folder: Path) -> list[int]:
    """The epochs whose states are recorded; their files must be there, and no others."""
    found = store.checkpoints()
    assert {path.name for path in (folder / CHECKPOINTS).iterdir()} == {record.file for record in found}
    return [record.epoch for record in found]


def hear_epochs(run: Run, store: Store, folder: Path, epochs: int) -> None:
    (folder / CHECKPOINTS).mkdir()
    for epoch in range(1, epochs + 1):
        (folder / CHECKPOINTS / state(run, epoch).file).touch()
        record(store, folder, epoch_done(run, epoch))


def test_a_run_continues_from_its_own_states_and_from_shorter_runs_on_its_path(data: Path) -> None:
    two, three = (one_run(data, epochs=epochs) for epochs in (2, 3))
    other = three.model_copy(update={"seed": 1})
    assert two.identity != three.identity
    kept = [state(two, 1), state(two, 2), state(three, 3), state(other, 2)]
    assert resumable(three, kept) == (state(three, 3), state(two, 2), state(two, 1))
    assert resumable(two, kept) == (state(two, 2), state(two, 1))


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_schedule_that_depends_on_the_budget_starts_over(data: Path, schedule: str) -> None:
    two, three = (one_run(data, epochs=epochs, schedule=schedule) for epochs in (2, 3))
    assert resumable(three, [state(two, 1), state(two, 2)]) == ()
    fixed = {"kind": "adam", "schedule": {"kind": schedule, "decay_epochs": 5}}
    two, three = (one_run(data, epochs=epochs, optimiser=fixed) for epochs in (2, 3))
    assert resumable(three, [state(two, 1), state(two, 2)]) == (state(two, 2), state(two, 1))


def test_a_run_keeps_two_states_while_it_trains_and_one_at_its_end(tmp_path: Path, data: Path, store: Store) -> None:
    run = one_run(data, epochs=4)
    hear_epochs(run, store, tmp_path, 4)
    assert kept_epochs(store, tmp_path) == [3, 4]
    record(store, tmp_path, ended(run, {"status": "done", "epoch": 4}, ("default",)))
    assert kept_epochs(store, tmp_path) == [4]
    assert list(store.records().epochs[run.trajectory]) == [1, 2, 3, 4]


def test_a_run_that_failed_keeps_its_states_and_one_that_diverged_does_not(
    tmp_path: Path, data: Path, store: Store
) -> None:
    run = one_run(data, epochs=4)
    hear_epochs(run, store, tmp_path, 2)
    record(store, tmp_path, ended(run, {"status": "failed", "epoch": 3}))  # epoch 3 was not saved
    assert kept_epochs(store, tmp_path) == [1, 2]
    record(store, tmp_path, ended(run, {"status": "diverged", "epoch": 3}))
    assert kept_epochs(store, tmp_path) == []


def test_messages_without_records_store_nothing_and_a_stop_stops(tmp_path: Path, store: Store) -> None:
    record(store, tmp_path, Note(text="hello"))
    assert store.rows() == 0
    with pytest.raises(TiebreakError, match="no room"):
        record(store, tmp_path, Abort(text="no room"))


def test_records_of_one_epoch_are_all_there_or_not_at_all(tmp_path: Path, data: Path, store: Store) -> None:
    run = one_run(data)
    good = epoch_done(run, 1)
    (checkpoint,) = good.checkpoints
    half = dataclasses.replace(good, checkpoints=(dataclasses.replace(checkpoint, epoch=[]),))  # type: ignore[arg-type]
    with pytest.raises(TiebreakError):
        record(store, tmp_path, half)
    assert store.rows() == 0
    assert store.checkpoints() == []


def test_messages_that_arrive_together_are_one_transaction_and_those_before_a_stop_are_stored(
    tmp_path: Path, data: Path, store: Store
) -> None:
    run = one_run(data)
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    with pytest.raises(TiebreakError, match="no room"):
        record(
            store, tmp_path, *(epoch_done(run, epoch) for epoch in (1, 2)), Abort(text="no room"), epoch_done(run, 3)
        )
    store._connection.set_trace_callback(None)
    assert sum(line.startswith("COMMIT") for line in statements) == 1
    assert list(store.records().epochs[run.trajectory]) == [1, 2]
    broken = dataclasses.replace(state(run, 4), epoch=[])  # type: ignore[arg-type]
    with pytest.raises(TiebreakError):
        record(store, tmp_path, epoch_done(run, 3), EpochDone(records=(), checkpoints=(broken,)))
    assert list(store.records().epochs[run.trajectory]) == [1, 2]


def together(runs: list[Run], epoch: int, *, saved: bool = True) -> EpochDone:
    """An epoch of runs that are trained as one."""
    done = [epoch_done(run, epoch) for run in runs]
    return EpochDone(
        records=tuple(record for each in done for record in each.records),
        checkpoints=tuple(record for each in done for record in each.checkpoints) if saved else (),
    )


def test_an_epoch_of_many_runs_is_kept_in_one_transaction(tmp_path: Path, data: Path, store: Store) -> None:
    runs = [one_run(data).model_copy(update={"seed": seed}) for seed in range(5)]
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    for epoch in (1, 2, 3):
        record(store, tmp_path, together(runs, epoch))
    store._connection.set_trace_callback(None)
    assert sum(line.startswith("BEGIN") for line in statements) == 3
    assert sum(line.startswith("SELECT") for line in statements) == 3  # not one for each run
    assert [(record.identity, record.epoch) for record in store.checkpoints()] == sorted(
        (run.identity, epoch) for run in runs for epoch in (2, 3)
    )
    last = together(runs, 4)
    broken = dataclasses.replace(last.checkpoints[-1], epoch=[])  # type: ignore[arg-type]
    with pytest.raises(TiebreakError):
        record(store, tmp_path, dataclasses.replace(last, checkpoints=(*last.checkpoints[:-1], broken)))
    assert {epoch for rows in store.records().epochs.values() for epoch in rows} == {1, 2, 3}


def test_the_last_two_states_stay_even_when_not_every_epoch_is_saved(tmp_path: Path, data: Path, store: Store) -> None:
    run = one_run(data, epochs=9)
    for epoch in range(1, 8):
        (tmp_path / CHECKPOINTS).mkdir(exist_ok=True)
        if epoch in (2, 4, 7):
            (tmp_path / CHECKPOINTS / state(run, epoch).file).touch()
        record(store, tmp_path, together([run], epoch, saved=epoch in (2, 4, 7)))
        assert kept_epochs(store, tmp_path) == [saved for saved in (2, 4, 7) if saved <= epoch][-2:]
    assert list(store.records().epochs[run.trajectory]) == list(range(1, 8))


def test_a_state_that_is_further_than_the_one_resumed_from_stays(tmp_path: Path, data: Path, store: Store) -> None:
    run = one_run(data, epochs=9)
    with store.transaction():
        for epoch in (1, 5):
            store.add_checkpoint(state(run, epoch))
    record(store, tmp_path, epoch_done(run, 2))  # 5 was damaged: a worker started from 1
    assert [record.epoch for record in store.checkpoints()] == [1, 2, 5]


def test_a_choice_is_kept(tmp_path: Path, store: Store) -> None:
    choice = Choice(cohort="c", device="cpu", strategy="fused", threads=1, runs=4, loop_ms=2.0, fused_ms=1.0, fits=4)
    record(store, tmp_path, StrategyMeasured(choice=choice))
    assert store.choices() == {("c", "cpu"): choice}

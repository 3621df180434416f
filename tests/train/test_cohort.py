from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from support.small_study import cohort_job, make_job, one_arm, one_epoch, one_run, one_thread, small_study, write_data
from tiebreak.drive.messages import EpochDone, Job, Message, Note, Progress, RunEnded
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.results.check import CHECKPOINTS
from tiebreak.train import loop, trainer
from tiebreak.train.cohort import begin, train


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def do(job: Job, messages: int | None = None) -> list[Message]:
    """The messages of a job, or only the first ones."""
    return list(itertools.islice(train(job, lambda message: None), messages))


def numbers(messages: list[Message]) -> list[Any]:
    """What a job must produce whatever happens around it: no clocks."""
    found: list[Any] = []
    for message in messages:
        if isinstance(message, EpochDone):
            record, checkpoint = one_epoch(message)
            found.append((record.epoch, record.metrics, checkpoint))
        elif isinstance(message, RunEnded):
            finals = [
                (item.metrics, {name: values.tobytes() for name, values in item.outcomes.items()})
                for item in message.finals
            ]
            provenance = {**message.record.provenance, "ms_per_step": ""}
            found.append((replace(message.record, provenance=provenance), finals))
    return found


def checkpoints(messages: list[Message]) -> list[Any]:
    return [one_epoch(message)[1] for message in messages if isinstance(message, EpochDone)]


def test_a_run_leaves_a_record_per_epoch_and_one_at_its_end(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    *epochs, end = do(make_job(run, tmp_path, data))
    for number, message in enumerate(epochs, start=1):
        record, checkpoint = one_epoch(message)
        assert (record.trajectory, record.epoch) == (run.trajectory, number)
        assert set(record.metrics) == {"train_loss", "val_accuracy", "val_loss"}
        assert set(record.seconds) == {"train", "evaluate", "checkpoint"}
        assert all(value > 0 for value in record.seconds.values())
        assert checkpoint.epoch == number
    assert isinstance(end, RunEnded)
    assert (end.record.status, end.record.epoch, end.record.reason) == ("done", 3, "")
    assert end.record.provenance["torch"] == torch.__version__
    assert (end.record.provenance["strategy"], end.record.provenance["runs"]) == ("loop", "1")
    assert float(end.record.provenance["ms_per_step"]) > 0
    (final,) = end.finals
    assert final.evaluation == "default"
    assert final.outcomes["accuracy"].shape == (24,)
    assert final.metrics["accuracy"] == final.outcomes["accuracy"].mean()


def test_a_design_learns(tmp_path: Path, data: Path) -> None:
    end = do(make_job(one_run(data, epochs=5), tmp_path, data))[-1]
    assert isinstance(end, RunEnded)
    assert end.finals[0].metrics["accuracy"] > 0.9


def test_progress_is_sent_at_once(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "TICK_SECONDS", -1.0)
    run, told = one_run(data, epochs=2), list[Message]()
    list(train(make_job(run, tmp_path, data), told.append))
    assert {type(message) for message in told} == {Progress}
    progress = [message for message in told if isinstance(message, Progress)]
    assert [message.epochs for message in progress] == pytest.approx([step / 12 for step in range(1, 25)])
    assert {message.identities for message in progress} == {(run.identity,)}
    assert all(message.rate > 0 for message in progress)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_run_continued_from_a_checkpoint_is_the_run_without_interruption(
    tmp_path: Path, data: Path, stop: int
) -> None:
    run = one_run(data)
    whole = do(make_job(run, tmp_path / "whole", data))
    parts = do(make_job(run, tmp_path / "parts", data), stop)
    rest = do(make_job(run, tmp_path / "parts", data, tuple(reversed(checkpoints(parts)))))
    assert len(checkpoints(rest)) == 3 - stop
    assert numbers(parts) + numbers(rest) == numbers(whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    whole = do(make_job(run, tmp_path / "whole", data))
    first, second = checkpoints(do(make_job(run, tmp_path, data), 2))
    (tmp_path / CHECKPOINTS / second.file).write_bytes(b"damaged")
    note, *rest = do(make_job(run, tmp_path, data, (second, first)))
    assert isinstance(note, Note)
    assert str(tmp_path / CHECKPOINTS / second.file) in note.text
    assert "the one before it" in note.text
    assert numbers(rest) == numbers(whole)[1:]


def test_a_run_without_a_whole_checkpoint_starts_over_and_says_so(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    whole = do(make_job(run, tmp_path / "whole", data))
    (only,) = checkpoints(whole[:1])
    note, *rest = do(make_job(run, tmp_path, data, (only,)))
    assert isinstance(note, Note)
    assert "starting over" in note.text
    assert numbers(rest) == numbers(whole)


def test_a_damaged_checkpoint_of_one_run_of_many_is_named_once(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "SAVE_SHARE", 1e9)  # saves every epoch
    run = one_run(data)
    runs = [run.model_copy(update={"seed": seed}) for seed in range(3)]
    parts = do(cohort_job(runs, tmp_path, data, strategy="fused"), 2)
    saved = [tuple(message.checkpoints[row] for message in reversed(epochs_of(parts))) for row in range(3)]
    (tmp_path / CHECKPOINTS / saved[1][0].file).write_bytes(b"damaged")
    messages = do(cohort_job(runs, tmp_path, data, strategy="fused", checkpoints=tuple(saved)))
    assert [type(message) for message in messages].count(Note) == 1
    trained = [(record.trajectory, record.epoch) for message in epochs_of(messages) for record in message.records]
    assert trained == [
        (runs[1].trajectory, 2),
        (runs[1].trajectory, 3),
        (runs[0].trajectory, 3),
        (runs[2].trajectory, 3),
    ]
    ends = [message.record for message in messages if isinstance(message, RunEnded)]
    assert [(end.status, end.epoch) for end in ends] == [("done", 3)] * 3
    assert {end.provenance["strategy"] for end in ends} == {"fused"}
    assert sorted(end.provenance["runs"] for end in ends) == ["1", "2", "2"]


def epochs_of(messages: list[Message]) -> list[EpochDone]:
    return [message for message in messages if isinstance(message, EpochDone)]


def test_runs_do_not_depend_on_their_company(tmp_path: Path, data: Path) -> None:
    runs = list(make_plan(small_study(), data).runs.values())
    alone = {run.identity: numbers(do(make_job(run, tmp_path / "alone", data))) for run in runs}
    torch.manual_seed(9)
    trainer = {run.identity: train(make_job(run, tmp_path / "together", data), lambda message: None) for run in runs}
    found: dict[str, list[Message]] = {identity: [] for identity in trainer}
    while trainer:  # one epoch of each in turn
        for identity, started in list(trainer.items()):
            message = next(started, None)
            if message is None:
                del trainer[identity]
            else:
                found[identity].append(message)
                torch.rand(3)
    assert {identity: numbers(messages) for identity, messages in found.items()} == alone


def test_seeds_and_designs_differ(tmp_path: Path, data: Path) -> None:
    losses = {
        run.label: [item[1]["train_loss"] for item in numbers(do(make_job(run, tmp_path, data)))[:-1]]
        for run in make_plan(small_study(), data).runs.values()
    }
    assert len(losses) == 4
    assert len({tuple(values) for values in losses.values()}) == 4


def test_no_global_generator_is_touched(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    before = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    begin(make_job(run, tmp_path, data))
    assert torch.equal(before[0], torch.get_rng_state())
    do(make_job(run, tmp_path, data))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert before[2] == repr(np.random.get_state())  # noqa: NPY002


def test_initial_weights_are_those_of_the_seed(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    (one,), (two,) = (begin(make_job(run, tmp_path, data)).states for _ in range(2))
    assert all(torch.equal(value, two.params[name]) for name, value in one.params.items())
    (other,) = begin(make_job(run.model_copy(update={"seed": 1}), tmp_path, data)).states
    assert not any(torch.equal(value, other.params[name]) for name, value in one.params.items())


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_a_run_that_diverges_ends_with_its_epoch_and_reason(tmp_path: Path, data: Path, kind: str) -> None:
    (end,) = do(make_job(one_run(data, kind=kind, fixed={"lr": 1e6}), tmp_path, data))
    assert isinstance(end, RunEnded)
    assert (end.record.status, end.record.epoch, end.record.reason) == ("diverged", 1, "epoch 1: train loss nan")
    assert end.finals == ()


def test_every_evaluation_is_made_after_the_last_epoch(tmp_path: Path, data: Path) -> None:
    arms = [
        {"name": "still", "design": "cnn-strided"},
        {"name": "moved", "design": "cnn-strided", "evaluation": {"shift": 9}},
    ]
    (run,) = make_plan(one_arm(arms=arms), data).runs.values()
    end = do(make_job(run, tmp_path, data))[-1]
    assert isinstance(end, RunEnded)
    still, moved = end.finals
    assert (still.evaluation, moved.evaluation) == ("default", "shift=9")
    assert still.metrics["loss"] != moved.metrics["loss"]


def test_data_that_changed_since_the_plan_stops_everything(tmp_path: Path, data: Path) -> None:
    run: Run = one_run(data)
    other = run.model_copy(update={"checksum": "0" * 64})
    with pytest.raises(TiebreakError, match="data set pneumoniamnist changed since the plan was made"):
        begin(make_job(other, tmp_path, data))

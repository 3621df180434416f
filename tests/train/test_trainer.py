from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from support.job_messages import do, numbers
from support.small_study import make_job, one_arm, one_epoch, one_run, one_thread, small_study, write_data
from tiebreak.drive.messages import Message, Progress, RunEnded
from tiebreak.drive.worker import train
from tiebreak.plan.planner import make_plan
from tiebreak.study.registry import TASKS
from tiebreak.train import loop
from tiebreak.train.run_group import make_group


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def test_a_run_leaves_a_record_per_epoch_and_one_at_its_end(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    *epochs, end = do(make_job(run, tmp_path, data))
    for number, message in enumerate(epochs, start=1):
        record, checkpoint = one_epoch(message)
        assert (record.trajectory, record.epoch) == (run.trajectory, number)
        assert set(record.metrics) == {"train_loss", *(f"val_{name}" for name in TASKS["classify"].metrics)}
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
    make_group(make_job(run, tmp_path, data))
    assert torch.equal(before[0], torch.get_rng_state())
    do(make_job(run, tmp_path, data))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert before[2] == repr(np.random.get_state())  # noqa: NPY002


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

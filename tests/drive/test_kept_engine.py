"""What was prepared for timing is used for training, and changes no number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.small_study import cohort_job, one_run, one_thread, write_data
from tiebreak.drive import kept_engine, worker
from tiebreak.drive.kept_engine import free_unless_of, keep
from tiebreak.drive.messages import EpochDone, Job, Message, RunEnded
from tiebreak.train.fused.engine import Fused
from tiebreak.train.run_group import make_group


@pytest.fixture(name="data", scope="module")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path_factory.mktemp("kept") / "data")


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    yield
    kept_engine._KEPT.clear()


def fused_job(folder: Path, data: Path) -> Job:
    run = one_run(data, epochs=1)
    job = cohort_job([run, run.model_copy(update={"seed": 1})], folder, data)
    return replace(job, work="train", strategy="fused", compiled=False)


def timed(job: Job) -> Fused:
    """An engine that has trained a few steps, kept for the job."""
    measured = replace(job, work="measure", strategy="loop", compiled=None)
    group = make_group(measured)
    engine = Fused(group.task, group.network, group.runs, group.states, compiled=False, precision=group.precision)
    split = group.split("train", {})
    engine.train_steps(split, 2)
    engine.train_steps(split, 2)
    assert group.states[0].steps == 0
    keep(measured, engine, split)
    return engine


def performed(job: Job) -> list[Message]:
    heard: list[Message] = []
    worker.perform(job, heard.append)
    return heard


def metrics(messages: list[Message]) -> list[object]:
    epochs = [record.metrics for message in messages if isinstance(message, EpochDone) for record in message.records]
    finals = [final.metrics for message in messages if isinstance(message, RunEnded) for final in message.finals]
    assert epochs
    assert finals
    return [epochs, finals]


def test_training_goes_on_with_the_engine_from_the_start(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = performed(fused_job(tmp_path / "alone", data))
    job = fused_job(tmp_path / "kept", data)
    engine = timed(job)
    programs = dict(engine._training)
    monkeypatch.setattr(worker, "make_engine", lambda *_: pytest.fail("another engine was made"))
    found = performed(job)
    assert metrics(found) == metrics(alone)
    assert engine._training == programs
    assert not kept_engine._KEPT


@pytest.mark.parametrize("change", [{"work": "time"}, {"strategy": "loop"}, {"compiled": True}, {"runs": ()}])
def test_another_job_frees_the_engine(tmp_path: Path, data: Path, change: dict[str, object]) -> None:
    job = fused_job(tmp_path, data)
    timed(job)
    free_unless_of(job)
    assert kept_engine._KEPT
    free_unless_of(replace(job, **change))  # type: ignore[arg-type]
    assert not kept_engine._KEPT


def test_a_part_of_the_runs_has_an_engine_of_its_own(tmp_path: Path, data: Path) -> None:
    job = fused_job(tmp_path, data)
    timed(job)
    runs = make_group(job).runs
    assert kept_engine.take(job, make_group(job, runs[:1])) is None
    assert not kept_engine._KEPT

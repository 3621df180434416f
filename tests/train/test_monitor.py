from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from support.fused_jobs import numbers, saved_in, train_job
from support.small_study import cohort_job, one_run, one_thread, write_data
from tiebreak.drive.messages import EpochDone, Message, RunEnded
from tiebreak.plan.runs import Monitor, Run
from tiebreak.study.optimiser import Optimiser, Schedule
from tiebreak.train import monitor
from tiebreak.train.step import State, initial_state

RUN = Run(
    design="none", source="", build={}, task="classify", options={}, data="none", checksum="", optimiser=Optimiser(),
    hypers={"lr": 0.1, "dropout": None}, setting={}, seed=0, epochs=50, batch=8, comparability=1, evaluations=({},),
)  # fmt: skip


def begun(**changes: Any) -> tuple[Run, State]:
    run = RUN.model_copy(update={"monitor": Monitor(metric="accuracy", goal="max"), **changes})
    state = initial_state(nn.Linear(2, 1, bias=False), run)
    return run, state


def observe(run: Run, state: State, score: float) -> None:
    state.epoch += 1
    state.params["weight"].fill_(state.epoch)
    monitor.observe(run, state, score)


@settings(deadline=None)
@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), max_size=12), st.sampled_from(["max", "min"]), st.integers(0, 3))
def test_plateau_reduces_where_torch_does(scores: list[float], goal: str, patience: int) -> None:
    schedule = Schedule(kind="plateau", patience=patience, factor=0.5)
    run, state = begun(
        optimiser=Optimiser(schedule=schedule), monitor=Monitor.model_validate({"metric": "accuracy", "goal": goal})
    )
    mode: Any = goal
    theirs = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    plateau = ReduceLROnPlateau(theirs, mode=mode, factor=0.5, patience=patience, threshold=0.0, eps=0.0)
    for score in scores:
        observe(run, state, score)
        plateau.step(score)
        assert state.reduction == pytest.approx(theirs.param_groups[0]["lr"])


def test_a_run_stops_after_its_patience_and_is_evaluated_at_its_best() -> None:
    run, state = begun(monitor=Monitor(metric="accuracy", goal="max", patience=2))
    for score in (0.1, 0.3, 0.2):
        observe(run, state, score)
        assert not monitor.stopped(run, state)
    assert monitor.epochs_left(run, state) == 47
    observe(run, state, 0.3)  # as good is not better
    assert monitor.stopped(run, state)
    assert monitor.epochs_left(run, state) == 0
    assert monitor.early_stopping(run, state, 4) == {"evaluated_epoch": "2", "stopped_epoch": "4"}
    monitor.load_evaluated(state)
    assert state.params["weight"].tolist() == [[2.0, 2.0]]


def test_the_best_weights_of_averaged_runs_are_the_averaged_ones() -> None:
    run, state = begun(monitor=Monitor(metric="loss", goal="min", patience=1), hypers={**RUN.hypers, "ema": 0.9})
    state.averages["weight"].fill_(7.0)
    observe(run, state, 0.5)
    state.averages["weight"].fill_(8.0)
    observe(run, state, 0.6)
    monitor.load_evaluated(state)
    assert state.params["weight"].tolist() == state.averages["weight"].tolist() == [[7.0, 7.0]]


def ends(messages: Sequence[Message]) -> dict[int, tuple[int, int]]:
    """By seed: the epoch at which a run stopped, and the one that was evaluated."""
    found = [message.record for message in messages if isinstance(message, RunEnded)]
    return {index: (record.epoch, record.evaluated_epoch) for index, record in enumerate(found)}


def test_early_stopping_is_the_same_alone_in_company_and_after_a_kill(tmp_path: Path) -> None:
    with one_thread():
        data = write_data(tmp_path / "data")
        first = one_run(data, fixed={"lr": 0.02}, kind="sgd", budget={"epochs": 6, "batch": 32, "patience": 1})
        runs = [first.model_copy(update={"seed": seed}) for seed in range(4)]
        together = train_job(cohort_job(runs, tmp_path / "fused", data, strategy="fused"))
        alone = [train_job(cohort_job([run], tmp_path / "loop", data))[-1] for run in runs]
        assert ends(together) == ends(alone)
        assert len({epoch for epoch, _ in ends(together).values()}) > 1  # they stopped at different epochs
        assert all(best < 6 for _, best in ends(together).values())
        mine = {message.record.identity: message for message in together if isinstance(message, RunEnded)}
        for message in alone:
            assert isinstance(message, RunEnded)
            final = mine[message.record.identity].finals[0].metrics
            assert final == pytest.approx(dict(message.finals[0].metrics), rel=1e-4)
        # Killed after the first run stopped, and continued: the stopped run is not trained again.
        part = train_job(cohort_job(runs, tmp_path / "killed", data, strategy="fused"), messages=2)
        saved = saved_in(part)
        checkpoints = tuple(tuple(saved.get(run.identity, ())) for run in runs)
        rest = train_job(cohort_job(runs, tmp_path / "killed", data, strategy="fused", checkpoints=checkpoints))
        assert numbers([each for each in rest if isinstance(each, RunEnded)]) == numbers(
            [each for each in together if isinstance(each, RunEnded)]
        )
        assert sum(isinstance(each, EpochDone) for each in rest) < sum(isinstance(each, EpochDone) for each in together)

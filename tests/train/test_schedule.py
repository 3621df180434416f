from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, OneCycleLR, SequentialLR, StepLR

from tiebreak.study.schema import Schedule
from tiebreak.train.schedule import factors

SCHEDULES = st.builds(
    Schedule,
    kind=st.sampled_from(["constant", "linear", "cosine"]),
    warmup_epochs=st.integers(0, 5),
    decay_epochs=st.integers(0, 20),
    floor=st.floats(0, 1),
)


def per_epoch(schedule: Schedule, epochs: int) -> list[float]:
    return [float(factors(schedule, epoch, 4, epochs)[0]) for epoch in range(epochs)]


def of_torch(schedule: LRScheduler, epochs: int) -> list[float]:
    found = []
    for _ in range(epochs):
        found.append(float(schedule.get_last_lr()[0]))
        schedule.optimizer.step()
        schedule.step()
    return found


def unit_optimiser() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)


def test_the_speech_schedule_of_the_reports() -> None:
    speech = Schedule(kind="linear", warmup_epochs=2, decay_epochs=12, floor=0.01)
    found = per_epoch(speech, 15)
    assert found[:3] == pytest.approx([0.01, 0.505, 1.0], abs=1e-12)
    assert found[14] == pytest.approx(0.01, abs=1e-12)
    optimiser = unit_optimiser()
    warm = LinearLR(optimiser, start_factor=0.01, total_iters=2)
    decay = LinearLR(optimiser, start_factor=1.0, end_factor=0.01, total_iters=12)
    assert found == pytest.approx(of_torch(SequentialLR(optimiser, [warm, decay], [2]), 15), abs=1e-12)


def test_the_rest_of_the_budget_is_the_default_decay() -> None:
    fixed = Schedule(kind="linear", warmup_epochs=2, decay_epochs=12)
    assert per_epoch(Schedule(kind="linear", warmup_epochs=2), 14) == per_epoch(fixed, 14)


def test_after_the_decay_the_floor_remains() -> None:
    for kind in ("linear", "cosine"):
        schedule = Schedule(kind=kind, decay_epochs=3, floor=0.2)
        assert per_epoch(schedule, 8)[3:] == pytest.approx([0.2] * 5)


def test_constant_rises_over_the_warm_up_and_stays() -> None:
    assert per_epoch(Schedule(warmup_epochs=4, floor=0.0), 6) == [0, 0.25, 0.5, 0.75, 1, 1]
    assert per_epoch(Schedule(), 3) == [1, 1, 1]


def test_the_cosine_moves_at_every_step_from_one_to_the_floor() -> None:
    schedule = Schedule(kind="cosine", floor=0.1)
    whole = np.concatenate([factors(schedule, epoch, 5, 4) for epoch in range(4)])
    assert whole[0] == 1
    assert (np.diff(whole) < 0).all()
    annealing = CosineAnnealingLR(unit_optimiser(), T_max=20, eta_min=0.1)
    assert whole.tolist() == pytest.approx(of_torch(annealing, 20), abs=1e-12)
    assert factors(schedule, 4, 5, 4)[0] == pytest.approx(0.1)


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_the_others_are_constant_within_an_epoch(kind: Literal["constant", "linear"]) -> None:
    schedule = Schedule(kind=kind, warmup_epochs=2)
    for epoch in range(6):
        found = factors(schedule, epoch, 7, 6)
        assert found.shape == (7,)
        assert len(set(found.tolist())) == 1


@given(SCHEDULES, st.integers(0, 30), st.integers(1, 6), st.integers(1, 20))
def test_factors_lie_between_the_floor_and_one(schedule: Schedule, epoch: int, steps: int, epochs: int) -> None:
    found = factors(schedule, epoch, steps, epochs)
    assert found.shape == (steps,)
    assert (found >= schedule.floor).all()
    assert (found <= 1).all()


@given(SCHEDULES, st.integers(1, 8), st.integers(1, 8), st.integers(1, 4))
def test_a_longer_budget_changes_past_epochs_only_where_the_schedule_says_so(
    schedule: Schedule, epochs: int, more: int, steps: int
) -> None:
    if not schedule.depends_on_budget():
        for epoch in range(epochs):
            assert np.array_equal(
                factors(schedule, epoch, steps, epochs), factors(schedule, epoch, steps, epochs + more)
            )


def test_steps_fall_as_those_of_torch() -> None:
    schedule = Schedule(kind="step", step_epochs=3, factor=0.5)
    assert per_epoch(schedule, 8) == pytest.approx(of_torch(StepLR(unit_optimiser(), 3, gamma=0.5), 8), abs=1e-12)
    assert per_epoch(Schedule(kind="step", step_epochs=1, warmup_epochs=1, floor=0.0), 3) == pytest.approx([0, 1, 0.1])


@pytest.mark.parametrize(("epochs", "steps", "rising"), [(4, 5, 0.3), (3, 7, 0.5), (2, 1, 0.3)])
def test_one_cycle_is_that_of_torch(epochs: int, steps: int, rising: float) -> None:
    schedule = Schedule(kind="one-cycle", pct_start=rising)
    assert schedule.depends_on_budget()
    whole = np.concatenate([factors(schedule, epoch, steps, epochs) for epoch in range(epochs)])
    if epochs * steps * rising <= 1:  # torch divides by zero: no step rises
        assert whole.tolist() == pytest.approx([1.0, 1 / 25 / 1e4])
        return
    cycle = OneCycleLR(
        unit_optimiser(), 1.0, total_steps=epochs * steps, pct_start=rising, cycle_momentum=False, anneal_strategy="cos"
    )
    assert whole.tolist() == pytest.approx(of_torch(cycle, epochs * steps), abs=1e-12)


def test_a_plateau_is_at_the_factor_that_validation_has_reached() -> None:
    schedule = Schedule(kind="plateau", warmup_epochs=2, floor=0.0)
    assert factors(schedule, 5, 2, 9, 0.25).tolist() == [0.25, 0.25]
    assert factors(schedule, 1, 1, 9, 0.5).tolist() == [0.25]
    assert not schedule.depends_on_budget()

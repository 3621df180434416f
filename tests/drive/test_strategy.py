from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from support.small_study import cohort_job, small_study, write_data
from tiebreak.drive import strategy as module
from tiebreak.drive.jobs import CPU_COHORT, GAIN
from tiebreak.drive.messages import Job, StrategyMeasured
from tiebreak.drive.strategy import measure
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, Run
from tiebreak.results.record import Choice
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop

OWN = """
import torch
from torch import nn

class Keeps(nn.Module):
    def __init__(self, shape, layer=None):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)
        self.layer = layer or nn.Identity()

    def forward(self, images):
        self.last = self.layer(self.out(images.flatten(1)))
        return self.last

class Gate(nn.Module):
    def forward(self, logits):
        return logits if logits.sum() > 0 else -logits

class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, above):
        return above

class Signs(nn.Module):
    def forward(self, logits):
        return logits + Sign.apply(logits)

DESIGNS = {
    "keeps": Keeps,
    "decides": lambda shape: Keeps(shape, Gate()),
    "signs": lambda shape: Keeps(shape, Signs()),
}
"""


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _keep_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def plan_of(data: Path, design: str = "mlp", seeds: int = 3, **more: Any) -> Plan:
    arms = [{"name": name, "design": design} for name in ("one", "two")]
    study = small_study(seeds=seeds, kind="sgd", arms=arms, comparisons=[{"a": "one", "b": "two"}], **more)
    return make_plan(study, data)


def runs_of(data: Path, design: str = "mlp", seeds: int = 3, **more: Any) -> list[Run]:
    return list(plan_of(data, design, seeds, **more).runs.values())


def choice_of(job: Job) -> Choice:
    (message,) = measure(job)
    assert isinstance(message, StrategyMeasured)
    return message.choice


def timed(monkeypatch: pytest.MonkeyPatch, loop: float, fused: float) -> None:
    """Have a step of one run take so many seconds in a loop, and of all runs so many when fused."""

    def clock(trainer: Any, split: Any, steps: int) -> float:
        if isinstance(trainer, Fused):
            assert len(split["labels"]) == steps * 8
        return loop if isinstance(trainer, Loop) else fused

    monkeypatch.setattr(module, "time_steps", clock)


@pytest.mark.parametrize(("seconds", "rounds"), [(0.1, 5), (1.4, 5), (1.9, 4), (2.1, 3), (100.0, 1)])
def test_long_rounds_are_fewer(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, rounds: int
) -> None:
    now, trained = 0.0, list[str]()

    def clock(trainer: Any, split: Any, steps: int) -> float:
        nonlocal now
        now += seconds if isinstance(trainer, Loop) else 0.0
        trained.append(type(trainer).__name__)
        return 0.01

    monkeypatch.setattr(module, "time_steps", clock)
    monkeypatch.setattr("tiebreak.drive.strategy.time.perf_counter", lambda: now)
    choice_of(cohort_job(runs_of(data), tmp_path, data))
    assert (trained.count("Loop"), trained.count("Fused")) == (rounds + 2, rounds + 1)  # both have warmed up


@pytest.mark.parametrize(("step", "steps", "limit"), [(0.01, 100, 10.0), (1.0, 100, 10.0), (1.0, 1000, 50.0)])
def test_timing_may_take_ten_seconds_or_five_percent_of_the_training(step: float, steps: int, limit: float) -> None:
    assert module.timing_limit(step, steps) == pytest.approx(limit)


@pytest.mark.parametrize(("step", "steps"), [(0.0, 6), (0.001, 6), (0.1, 2), (0.2, 1), (60.0, 1)])
def test_rounds_of_slow_steps_have_fewer_of_them(step: float, steps: int) -> None:
    assert module.affordable_steps(step, runs=8, limit=10.0) == steps


def test_a_choice_says_what_was_measured(tmp_path: Path, data: Path) -> None:
    runs = runs_of(data)
    choice = choice_of(cohort_job(runs, tmp_path, data))
    assert (choice.cohort, choice.device) == (runs[0].cohort, "cpu")
    assert choice.threads == torch.get_num_threads()
    assert choice.runs == 3
    assert choice.fused_ms is not None
    assert 0 < choice.loop_ms < 1000
    assert 0 < choice.fused_ms < 1000
    assert choice.fits >= 2
    assert choice.reason == ""
    assert choice.strategy == "loop" or choice.fused_ms * GAIN < choice.loop_ms
    assert list(tmp_path.iterdir()) == []  # nothing is kept of what was trained


def test_fused_steps_must_save_what_preparing_them_takes(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "time_steps", lambda engine, split, steps: 1.0 if isinstance(engine, Loop) else 0.3)
    monkeypatch.setattr(Fused, "setup_seconds", lambda engine: 1e6)
    choice = choice_of(cohort_job(runs_of(data), tmp_path, data))
    assert (choice.strategy, choice.reason) == ("loop", "")


@pytest.mark.parametrize(
    ("loop", "fused", "strategy"),
    [(1.0, 2.0, "fused"), (1.0, 3.0, "loop"), (1.0, 2.9, "loop"), (1.0, 2.84, "fused"), (1.0, 9.0, "loop")],
    ids=["faster", "as fast", "not faster by 5 %", "just faster by 5 %", "slower"],
)
def test_fused_has_to_be_faster_by_five_percent(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, loop: float, fused: float, strategy: str
) -> None:
    timed(monkeypatch, loop, fused)
    choice = choice_of(cohort_job(runs_of(data), tmp_path, data))
    assert choice.strategy == strategy
    assert choice.loop_ms == pytest.approx(1000)
    assert choice.fused_ms == pytest.approx(1000 * fused / 3)
    assert math.isclose(GAIN, 1.05)


def test_more_runs_than_are_trained_at_once_are_not_needed(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed(monkeypatch, 1.0, 1.0)
    assert choice_of(cohort_job(runs_of(data, seeds=CPU_COHORT), tmp_path, data)).runs == CPU_COHORT // 2


@pytest.mark.parametrize(
    ("design", "parts"),
    [
        ("decides", ["it decides by values of a tensor", "(layer 'layer', Gate)"]),
        ("signs", ["setup_context", "(layer 'layer', Signs)"]),
    ],
)
def test_a_design_that_cannot_be_fused_loops_and_the_reason_is_the_plans(
    tmp_path: Path, data: Path, design: str, parts: list[str]
) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN, "utf-8")
    plan = plan_of(data, design, designs_from=str(path))
    choice = choice_of(cohort_job(list(plan.runs.values()), tmp_path, data, designs_from=str(path)))
    assert (choice.strategy, choice.fused_ms, choice.runs, choice.fits) == ("loop", None, 1, 1)
    assert choice.reason == plan.arm("one").cannot_fuse
    assert all(part in choice.reason for part in parts)
    assert "\n" not in choice.reason
    assert choice.loop_ms > 0


def test_a_network_that_keeps_what_it_computed_is_fused_as_planned(tmp_path: Path, data: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN, "utf-8")
    plan = plan_of(data, "keeps", designs_from=str(path))
    choice = choice_of(cohort_job(list(plan.runs.values()), tmp_path, data, designs_from=str(path)))
    assert (plan.arm("one").cannot_fuse, choice.reason) == ("", "")
    assert choice.fused_ms is not None


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
def test_other_precisions_are_measured_too(tmp_path: Path, data: Path, precision: str) -> None:
    choice = choice_of(cohort_job(runs_of(data, precision=precision), tmp_path, data))
    assert choice.reason == ""
    assert choice.fused_ms is not None
    assert choice.fits >= 2


def test_out_of_memory_measures_half_as_many(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tight(trainer: Any, split: Any, steps: int) -> float:
        if isinstance(trainer, Fused) and trainer._real > 2:
            raise torch.OutOfMemoryError("too many")
        return 1.0

    monkeypatch.setattr(module, "time_steps", tight)
    choice = choice_of(cohort_job(runs_of(data, seeds=4), tmp_path, data))
    assert (choice.runs, choice.reason) == (2, "")


def test_a_design_that_always_runs_out_of_memory_loops(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(trainer: Any, split: Any, steps: int) -> float:
        if isinstance(trainer, Fused):
            raise torch.OutOfMemoryError("no room")
        return 1.0

    monkeypatch.setattr(module, "time_steps", full)
    choice = choice_of(cohort_job(runs_of(data), tmp_path, data))
    assert (choice.strategy, choice.reason) == ("loop", "OutOfMemoryError: no room")


def test_a_design_that_fails_alone_fails(tmp_path: Path, data: Path) -> None:
    run = runs_of(data)[0].model_copy(update={"build": {"width": 3}})
    with pytest.raises(TypeError, match="width"):
        list(measure(cohort_job([run], tmp_path, data)))


def test_a_lone_run_can_be_measured_too(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed(monkeypatch, 1.0, 1.5)
    choice = choice_of(cohort_job(runs_of(data, seeds=1), tmp_path, data))
    assert (choice.runs, choice.strategy, choice.fused_ms) == (1, "loop", 1500)

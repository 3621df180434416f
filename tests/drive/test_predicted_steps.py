"""Predictions of a plan time as few steps as their limit allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from support.small_study import cohort_job, small_study, write_data
from tiebreak.drive import predicted_steps as module
from tiebreak.drive import strategy
from tiebreak.drive.predicted_steps import MOST_SECONDS, Timing, affordable_runs, time_cohort
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.study.schema import Study
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _keep_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def runs_of(data: Path, seeds: int) -> list[Run]:
    arms = [{"name": name, "design": "mlp"} for name in ("one", "two")]
    study = small_study(seeds=seeds, epochs=10_000, arms=arms, comparisons=[{"a": "one", "b": "two"}])
    return list(make_plan(study, data).runs.values())


class Machine:
    """A clock of made-up steps: of one run in so many seconds, whatever the strategy. Tracing takes a minute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now, self.trained, self.step = 0.0, list[tuple[str, int, int]](), step
        for place in (module, strategy):
            monkeypatch.setattr(place, "time_steps", self.clock)
            monkeypatch.setattr(place.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(Fused, "setup_seconds", lambda engine: 60.0)
        for engine in (Loop, Fused):
            monkeypatch.setattr(engine, "evaluate", lambda *_: None)

    def clock(self, engine: Any, split: Any, steps: int) -> float:
        runs = engine._real if isinstance(engine, Fused) else 1
        if isinstance(engine, Fused) and not any(name == "Fused" for name, *_ in self.trained):
            self.now += 60.0
        self.trained.append((type(engine).__name__, runs, steps))
        self.now += self.step * steps * runs
        return self.step * runs

    def spent(self) -> float:
        return self.step * sum(runs * steps for _, runs, steps in self.trained)


@pytest.mark.parametrize("step", [0.001, 0.05, 0.3, 0.6, 0.95, 1.4, 3.0])
def test_timing_keeps_the_limit_of_a_plan(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    machine = Machine(monkeypatch, step)
    timing = time_cohort(cohort_job(runs_of(data, seeds=9), tmp_path, data))
    assert machine.spent() <= MOST_SECONDS * 1.05
    assert timing.choice.loop_ms == pytest.approx(1000 * step)
    fused = [runs for name, runs, _ in machine.trained if name == "Fused"]
    assert bool(fused) == (step < 1.42)
    assert timing.shortened == (step > 0.55)
    assert timing.choice.fused_ms == (pytest.approx(1000 * step) if fused else None)
    assert timing.run_seconds > machine.spent() - 2 * step or step < 0.1


@pytest.mark.parametrize(
    ("step", "runs", "found"), [(0.0, 8, 8), (0.1, 8, 8), (1.0, 8, 3), (1.4, 8, 2), (1.5, 8, 0), (1.5, 1, 1), (9, 1, 0)]
)
def test_slow_steps_are_fused_with_fewer_runs(step: float, runs: int, found: int) -> None:
    assert affordable_runs(step, runs, 10.0) == found


def test_where_runs_are_not_measured_nothing_is_fused(tmp_path: Path, data: Path) -> None:
    timing = time_cohort(cohort_job(runs_of(data, seeds=2), tmp_path, data), fusing=False)
    assert (timing.choice.strategy, timing.choice.fused_ms, timing.shortened) == ("loop", None, False)


def fused_timing(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Timing:
    """Of runs for which fusing is chosen."""
    monkeypatch.setattr(module, "choose", lambda *_, **__: "fused")
    return time_cohort(cohort_job(runs_of(data, seeds=2), tmp_path, data))


def test_tracing_an_evaluation_is_no_time_of_its_examples(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_evaluation_seconds", lambda engine, part: (engine.evaluate(part), 1000.0)[1])
    traced: list[float] = []
    setup = Fused.setup_seconds

    def noted(engine: Fused) -> float:
        traced.append(setup(engine))
        return 1000.0 - 2 * len(traced) if len(traced) > 1 else 1.0

    monkeypatch.setattr(Fused, "setup_seconds", noted)
    timing = fused_timing(tmp_path, data, monkeypatch)
    assert len(traced) == 2
    assert traced[1] > 0  # the evaluation was traced
    assert timing.prepare_seconds == 1.0 + 996.0
    assert timing.evaluate_seconds * 2 <= 4.0


def test_where_tracing_takes_longer_than_fusing_saves_a_loop_is_predicted(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fused, "setup_seconds", lambda engine: 1e6)
    timing = time_cohort(cohort_job(runs_of(data, seeds=2), tmp_path, data))
    assert (timing.choice.strategy, timing.choice.reason) == ("loop", "")
    assert timing.choice.fused_ms is not None
    assert timing.prepare_seconds < 1e5


def test_an_evaluation_that_cannot_be_fused_is_predicted_as_a_loop(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise TiebreakError("no rule")

    monkeypatch.setattr(Fused, "evaluate", fails)
    timing = fused_timing(tmp_path, data, monkeypatch)
    assert (timing.choice.strategy, timing.choice.reason) == ("loop", "no rule")
    assert timing.evaluate_seconds > 0


def test_evaluation_is_timed_on_as_many_nodes_as_one_pass_answers_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.load("graph-normalisation").quickened()
    plan = make_plan(study.model_copy(update={"seeds": 2}), tmp_path)
    first = [run for run in plan.runs.values() if run.design == "gcn"]
    seen = list[int]()
    for engine in (Loop, Fused):
        monkeypatch.setattr(engine, "evaluate", lambda self, split: seen.append(len(split["node"])))
    time_cohort(cohort_job(first, tmp_path, tmp_path))
    assert seen == [plan.data.sizes["val"]]

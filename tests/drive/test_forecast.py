from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from support.small_study import one_arm, small_study, write_data
from tiebreak.drive import forecast as module
from tiebreak.drive.forecast import forecast, job_seconds, makespan
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Job
from tiebreak.drive.predicted_steps import Timing
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, cohort_names, cohorts
from tiebreak.results.record import Choice

SIZES = {"train": 100, "val": 10, "test": 20}


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module", name="plan")
def _plan(data: Path) -> Plan:
    shifted = {"name": "shifted", "design": "mlp", "evaluation": {"shift": 2}}
    arms = [{"name": "mlp", "design": "mlp"}, shifted]
    return make_plan(small_study(arms=arms, comparisons=[{"a": "mlp", "b": "shifted"}]), data)


@pytest.fixture(autouse=True)
def _keep_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def timing(**more: float) -> Timing:
    choice = Choice(
        cohort="c", device="cpu", strategy="fused", threads=1, runs=8, loop_ms=8.0, fused_ms=2.0, fits=9, reason=""
    )
    seconds: dict[str, Any] = {"prepare_seconds": 0.0, "evaluate_seconds": 0.0, **more}
    return Timing(choice=choice, examples=100, **seconds)


def test_jobs_are_spread_over_the_processes_as_they_become_free() -> None:
    assert makespan([3.0, 1.0, 1.0, 1.0], 2) == 3.0
    assert makespan([1.0, 1.0, 1.0], 1) == 3.0
    assert makespan([], 2) == 0.0


def test_a_job_takes_as_long_as_its_steps_with_its_strategy(plan: Plan) -> None:
    run = next(iter(plan.runs.values())).model_copy(update={"batch": 10, "epochs": 5})
    loop, fused = job_seconds(SIZES, [run], "loop", timing()), job_seconds(SIZES, [run], "fused", timing())
    assert loop == pytest.approx(0.008 * 10 * 5)
    assert fused == pytest.approx(loop / 4)
    assert job_seconds(SIZES, [run, run], "loop", timing()) == pytest.approx(2 * loop)
    assert job_seconds(SIZES, [run], "fused", timing(prepare_seconds=7.0)) == pytest.approx(fused + 7)


def test_every_evaluation_counts_and_a_run_that_arms_share_counts_once(plan: Plan) -> None:
    run = next(iter(plan.runs.values()))
    assert len(run.evaluations) == 2
    idle = timing(evaluate_seconds=1.0)
    more = job_seconds(SIZES, [run], "loop", idle) - job_seconds(SIZES, [run], "loop", timing())
    assert more == pytest.approx(run.epochs * 10 + 2 * 20)


def test_a_forecast_times_every_cohort_with_the_strategy_that_would_be_chosen(plan: Plan, data: Path) -> None:
    found = forecast(plan, Machine(workers=1, data_dir=data))
    assert set(found.cohorts) == set(found.strategies) == set(cohorts(plan.runs.values()))
    assert found.total > sum(found.cohorts.values()) > 0
    assert "timed" in found.how
    alone = forecast(plan, Machine(workers=1, data_dir=data, strategy="loop"))
    assert set(alone.strategies.values()) == {"loop"}


@pytest.mark.parametrize(
    ("fused_ms", "reason", "said"),
    [(2.0, "", "fewer runs"), (None, "", "not timed fused"), (None, "it draws", "")],
    ids=["fewer", "none", "cannot"],
)
def test_what_was_not_timed_is_told_and_before_training_it_is(
    plan: Plan, data: Path, monkeypatch: pytest.MonkeyPatch, fused_ms: float | None, reason: str, said: str
) -> None:
    found = timing(run_seconds=900.0)
    choice = replace(found.choice, strategy="loop", fused_ms=fused_ms, runs=3, reason=reason)
    monkeypatch.setattr(module, "time_cohort", lambda *_, **how: replace(found, choice=choice, shortened=True))
    told: list[str] = []
    times = forecast(plan, Machine(workers=1, data_dir=data), told.append)
    assert told == list(cohort_names(cohorts(plan.runs.values())).values())
    assert said in times.how.lower()
    assert ("slow" in times.how) == bool(said)
    assert times.total > 900.0 * len(told)


def test_runs_that_are_not_measured_before_training_are_not_fused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fused: list[bool] = []

    def noted(job: Job, *, fusing: bool) -> Timing:
        fused.append(fusing)
        return timing()

    monkeypatch.setattr(module, "time_cohort", noted)
    forecast(make_plan(one_arm(), data), Machine(workers=1, data_dir=data))
    forecast(make_plan(small_study(), data), Machine(workers=1, data_dir=data, strategy="loop"))
    assert not any(fused)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from support.small_study import small_study, write_data
from tiebreak.drive.forecast import forecast, job_seconds, makespan
from tiebreak.drive.machine import Machine
from tiebreak.drive.predicted_steps import Timing
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, cohorts
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

from __future__ import annotations

from pathlib import Path

import pytest

from support.small_study import small_study, write_data
from tiebreak.drive.machine import Machine
from tiebreak.drive.run_shares import divide, training_started
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, cohorts


@pytest.fixture(name="plan", scope="module")
def _plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    data: Path = write_data(tmp_path_factory.mktemp("data"))
    return make_plan(small_study(seeds=4), data)


def test_a_cluster_begins_with_what_takes_longest(plan: Plan) -> None:
    groups = cohorts(plan.runs.values())
    first, second = groups
    costs = {first: 1.0, second: 5.0}

    def order(on: str) -> list[str]:
        machine, loop = Machine(on=on), dict.fromkeys(groups, "loop")
        shares = divide(groups, loop, dict.fromkeys(groups), machine, 2, lambda key, strategy: costs[key])  # type: ignore[arg-type]
        return [key for key, runs in shares for _ in runs]

    assert order("local") == [first] * 4 + [second] * 4
    assert order("ray") == [second] * 4 + [first] * 4


def test_what_is_announced_is_what_is_missing(plan: Plan) -> None:
    groups = cohorts(list(plan.runs.values())[1:])
    started = training_started(plan, groups, {}, lambda key, strategy: 2.0, lambda run: run.seed, 3)
    assert (len(started.runs), started.stored, started.workers) == (7, 1, 3)
    assert {(run.done, run.cost) for run in started.runs.values()} == {(seed, 2.0) for seed in range(4)}

from __future__ import annotations

import pytest

from support.small_study import one_arm, write_data
from tiebreak.cluster.capacity import PROCESS_BYTES, Demand, demand
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan

LARGE = {"CPU": 8.0, "memory": 64e9, "GPU": 2.0}


@pytest.fixture(name="plan", scope="module")
def _plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return make_plan(one_arm(), write_data(tmp_path_factory.mktemp("data")))


def test_a_machine_has_room_for_as_many_workers_as_its_scarcest_resource() -> None:
    each = Demand(cpus=1, gpus=0, memory=1 << 30)
    assert each.fits({"CPU": 4.0, "memory": 100e9}) == 4
    assert each.fits({"CPU": 4.0, "memory": 2.5 * (1 << 30)}) == 2
    assert each.fits({"memory": 100e9}) == 0  # a head that does no work
    assert Demand(cpus=1, gpus=0.5, memory=1).fits(LARGE) == 4
    assert Demand(cpus=1, gpus=1, memory=1).fits({"CPU": 8.0, "memory": 9.0}) == 0


def test_more_workers_than_gpus_share_them(plan: Plan) -> None:
    assert demand(plan, "cpu", 8, [LARGE]).gpus == 0
    assert demand(plan, "cuda", None, [LARGE]).gpus == 1
    assert demand(plan, "cuda", 2, [LARGE]).gpus == 1
    assert demand(plan, "cuda", 5, [LARGE, {"CPU": 1.0, "memory": 1e9}]).gpus == pytest.approx(1 / 3)


def test_memory_grows_with_the_network_and_never_exceeds_the_largest_machine(plan: Plan) -> None:
    assert demand(plan, "cpu", None, [LARGE]).memory > PROCESS_BYTES
    assert demand(plan, "cpu", None, [{"CPU": 2.0, "memory": 1e6}]).fits({"CPU": 2.0, "memory": 1e6}) == 1

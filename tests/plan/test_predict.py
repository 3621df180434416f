from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import bad_studies, tiny
from tiebreak.plan.planner import make_plan
from tiebreak.plan.predict import predict
from tiebreak.plan.runs import Plan
from tiebreak.study.schema import Study

Make = Callable[..., Study]
POOL, STRIDED = bad_studies.POOL, bad_studies.STRIDED
SHUFFLED = {"name": "shuffled", "design": "cnn-pool", "options": {"shuffle_pixels": True}}
SHIFTED = {"name": "shifted", "design": "cnn-pool", "evaluation": {"shift": 2}}
LONGER = {"name": "longer", "design": "cnn-pool", "epochs_times": 2}
BRANCHES = """
from torch import nn

class Branches(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        logits = self.out(images.flatten(1))
        return logits if logits.sum() > 0 else -logits

DESIGNS = {"branches": Branches}
"""


@pytest.fixture
def plan_of(tiny_study: Make, tiny_data_dir: Path) -> Callable[..., Plan]:
    def plan(**changes: Any) -> Plan:
        return make_plan(tiny_study(**changes), tiny_data_dir)

    return plan


def test_a_prediction_counts_shared_runs_once(plan_of: Callable[..., Plan], tiny_data_dir: Path) -> None:
    plan = plan_of(arms=[POOL, SHIFTED, LONGER], comparisons=[{"a": "pool", "b": "shifted"}])
    predicted = predict(plan, tiny_data_dir, 2)
    assert predicted.seconds["shifted"] == 0
    assert 0 < predicted.seconds["pool"] < 60
    assert predicted.process_bytes > 1e8


def test_cohorts_are_predicted_with_the_memory_of_a_run(plan_of: Callable[..., Plan], tiny_data_dir: Path) -> None:
    arms = [POOL, STRIDED, SHIFTED, LONGER, SHUFFLED]
    small = predict(plan_of(arms=arms), tiny_data_dir, 1).cohorts
    assert [(item.name, item.runs, item.cannot_fuse) for item in small] == [
        ("cnn-pool shuffle_pixels=False", 4, ""),
        ("cnn-strided", 2, ""),
        ("cnn-pool shuffle_pixels=True", 2, ""),
    ]
    for item in small:
        assert 2 * 4 * item.parameters < item.run_bytes < 3 * 4 * item.parameters  # values, gradients, activations
    large = predict(plan_of(arms=arms, fixed={"lr": 0.1, "momentum": 0.9}), tiny_data_dir, 1).cohorts
    adam = predict(plan_of(arms=arms, optimiser={"kind": "adam"}), tiny_data_dir, 1).cohorts
    for plain, moving, two in zip(small, large, adam, strict=True):
        assert moving.run_bytes - plain.run_bytes == two.run_bytes - moving.run_bytes == 4 * plain.parameters


def test_a_plan_says_which_designs_cannot_be_fused_and_why(tiny_study: Make, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BRANCHES)
    tiny.write_data(tmp_path)
    arms = [POOL, {"name": "mine", "design": "branches"}]
    study = tiny_study(arms=arms, comparisons=[{"a": "pool", "b": "mine"}], designs_from=str(tmp_path / "mine.py"))
    plan = make_plan(study, tmp_path)
    assert plan.arm("pool").cannot_fuse == ""
    assert "tensor" in plan.arm("mine").cannot_fuse
    predicted = predict(plan, tmp_path, 1)
    assert [item.cannot_fuse for item in predicted.cohorts] == [arm.cannot_fuse for arm in plan.arms]


def test_more_workers_need_less_time_and_the_same_memory(plan_of: Callable[..., Plan], tiny_data_dir: Path) -> None:
    one, many = (predict(plan_of(), tiny_data_dir, workers) for workers in (1, 10**6))
    assert sum(many.seconds.values()) < sum(one.seconds.values())
    assert many.process_bytes == one.process_bytes
    assert many.cohorts == one.cohorts

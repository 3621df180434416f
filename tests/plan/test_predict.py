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


def test_cohorts_are_predicted_with_the_memory_of_a_run(plan_of: Callable[..., Plan]) -> None:
    arms = [POOL, STRIDED, SHIFTED, LONGER, SHUFFLED]
    small = predict(plan_of(arms=arms)).cohorts
    assert [(item.name, item.runs, item.cannot_fuse) for item in small] == [
        ("cnn-pool shuffle_pixels=False", 4, ""),
        ("cnn-strided", 2, ""),
        ("cnn-pool shuffle_pixels=True", 2, ""),
    ]
    assert predict(plan_of(arms=arms)).process_bytes > 1e8
    for item in small:
        assert 2 * 4 * item.parameters < item.run_bytes < 3 * 4 * item.parameters  # values, gradients, activations
    large = predict(plan_of(arms=arms, fixed={"lr": 0.1, "momentum": 0.9})).cohorts
    adam = predict(plan_of(arms=arms, optimiser={"kind": "adam"})).cohorts
    for plain, moving, two in zip(small, large, adam, strict=True):
        assert moving.run_bytes - plain.run_bytes == two.run_bytes - moving.run_bytes == 4 * plain.parameters


def test_in_float64_a_run_takes_twice_the_memory(plan_of: Callable[..., Plan]) -> None:
    single, double = predict(plan_of()), predict(plan_of(precision="float64"))
    pool, strided = zip(single.cohorts, double.cohorts, strict=True)
    assert strided[1].run_bytes == 2 * strided[0].run_bytes
    assert 1.9 * pool[0].run_bytes < pool[1].run_bytes < 2 * pool[0].run_bytes  # the places of maxima are no floats
    assert double.process_bytes > single.process_bytes


def test_a_plan_says_which_designs_cannot_be_fused_and_why(tiny_study: Make, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BRANCHES)
    tiny.write_data(tmp_path)
    arms = [POOL, {"name": "mine", "design": "branches"}]
    study = tiny_study(arms=arms, comparisons=[{"a": "pool", "b": "mine"}], designs_from=str(tmp_path / "mine.py"))
    plan = make_plan(study, tmp_path)
    assert plan.arm("pool").cannot_fuse == ""
    assert "tensor" in plan.arm("mine").cannot_fuse
    predicted = predict(plan)
    assert [item.cannot_fuse for item in predicted.cohorts] == [arm.cannot_fuse for arm in plan.arms]

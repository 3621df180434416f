from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import bad_studies, tiny
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Difference, Plan
from tiebreak.plan.terms import equal_terms
from tiebreak.study.schema import Study

Make = Callable[..., Study]
POOL = bad_studies.POOL


@pytest.fixture
def plan_of(tiny_study: Make, tiny_data_dir: Path) -> Callable[..., Plan]:
    def plan(**changes: Any) -> Plan:
        return make_plan(tiny_study(**changes), tiny_data_dir)

    return plan


def unequal(plan: Plan) -> set[str]:
    return {item.name for item in plan.terms if not item.equal}


def test_equal_terms_of_two_equal_arms_are_all_equal(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[POOL, {**POOL, "name": "strided"}])
    assert unequal(plan) == set()
    assert {item.name for item in plan.terms} >= {
        "data and split",
        "budget",
        "tuning",
        "seeds",
        "selection",
        "test set",
    }


def test_an_arm_with_a_hyper_parameter_of_its_own_is_flagged(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[{**POOL, "fixed": {"momentum": 0.9, "ema": 0.5}}, {**POOL, "name": "strided"}])
    assert unequal(plan) == {"untuned hyper-parameters"}
    value = next(term.value for term in plan.terms if term.name == "untuned hyper-parameters")
    assert "momentum=0.9, ema=0.5" in value
    assert "ema=0 instead of 0.5" in value


def test_arms_with_optimisers_and_windows_of_their_own_are_flagged(tmp_path: Path) -> None:
    plan = make_plan(Study.model_validate(tiny.language_content()), tiny.write_text(tmp_path))
    terms = {term.name: term for term in plan.terms}
    assert not terms["untuned hyper-parameters"].equal
    assert "sgd-summed" in terms["untuned hyper-parameters"].value
    assert not terms["task options"].equal
    assert "window" in terms["task options"].value


def test_a_kind_of_difference_that_is_added_later_is_a_term_of_its_own(plan_of: Callable[..., Plan]) -> None:
    arms = list(plan_of(arms=[POOL, {**POOL, "name": "strided"}]).arms)
    apart = (Difference(kind="kernels", name="kernels", first="plain", own="fast"),)
    arms[1] = arms[1].model_copy(update={"differences": apart})
    terms = {term.name: term for term in equal_terms(Study.model_validate(tiny.content()), arms, 96)}
    assert not terms["kernels"].equal
    assert terms["kernels"].value == "strided: kernels fast instead of plain"


OWN_GRIDS = [
    {**POOL, "optimiser": {"kind": "sgd"}, "grid": {"lr": [0.1, 0.03]}},
    {**POOL, "name": "strided", "optimiser": {"kind": "adam"}, "grid": {"lr": [0.003, 0.001]}},
]


def test_grids_of_their_own_are_equal_terms_if_they_have_as_many_settings(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=OWN_GRIDS, fixed=None)
    assert unequal(plan) == {"untuned hyper-parameters"}  # the update rules differ
    tuning = next(term.value for term in plan.terms if term.name == "tuning")
    assert all(part in tuning for part in ("2 settings", "pool: lr in 0.1, 0.03", "strided: lr in 0.003, 0.001"))
    assert {run.hypers["lr"] for run in plan.runs.values() if run.optimiser.kind == "adam"} == {0.003, 0.001}
    assert len(plan.runs) == 2 * 2 * 2


def test_unequal_numbers_of_settings_are_an_unequal_term_and_a_warning(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[OWN_GRIDS[0], {**OWN_GRIDS[1], "grid": {"lr": [0.001]}}], fixed=None)
    assert "tuning" in unequal(plan)
    assert any("unequal numbers of settings" in line and "pool 2, strided 1" in line for line in plan.warnings)


@pytest.mark.parametrize(("equal", "epochs", "steps"), [("examples", 1, "12 and 24"), ("steps", 2, "24")])
def test_batch_sizes_are_compared_at_equal_examples_or_at_equal_steps(
    plan_of: Callable[..., Plan], equal: str, epochs: int, steps: str
) -> None:
    budget = {"epochs": 1, "batch": 4, "equal": equal}
    plan = plan_of(arms=[POOL, {**POOL, "name": "strided", "batch": 8}], budget=budget)
    assert {(run.batch, run.epochs) for run in plan.runs.values()} == {(4, 1), (8, epochs)}
    value = next(term.value for term in plan.terms if term.name == "budget")
    assert "budget" in unequal(plan)
    assert f"equal {equal}: {steps} steps" in value

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
    plan = plan_of(arms=[{**POOL, "fixed": {"momentum": 0.9}}, {**POOL, "name": "strided"}])
    assert unequal(plan) == {"untuned hyper-parameters"}


def test_arms_with_optimisers_and_windows_of_their_own_are_flagged(tmp_path: Path) -> None:
    plan = make_plan(Study.model_validate(tiny.language_content()), tiny.write_text(tmp_path))
    terms = {term.name: term for term in plan.terms}
    assert not terms["untuned hyper-parameters"].equal
    assert "sgd-summed" in terms["untuned hyper-parameters"].value
    assert not terms["task options"].equal
    assert "window" in terms["task options"].value


def test_a_kind_of_difference_that_is_added_later_is_a_term_of_its_own(plan_of: Callable[..., Plan]) -> None:
    arms = list(plan_of(arms=[POOL, {**POOL, "name": "strided"}]).arms)
    apart = (Difference(kind="precision", name="precision", first="float32", own="bf16"),)
    arms[1] = arms[1].model_copy(update={"differences": apart})
    terms = {term.name: term for term in equal_terms(Study.model_validate(tiny.content()), arms)}
    assert not terms["precision"].equal
    assert terms["precision"].value == "strided: precision bf16 instead of float32"

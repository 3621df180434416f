from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import bad_studies, tiny
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan
from tiebreak.plan.terms import warnings
from tiebreak.study.schema import Study

Make = Callable[..., Study]
POOL, STRIDED, PAIR = bad_studies.POOL, bad_studies.STRIDED, bad_studies.PAIR


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


def test_too_few_seeds_are_a_warning(plan_of: Callable[..., Plan]) -> None:
    warning = plan_of().warnings[0]
    assert all(part in warning for part in ("2 seeds", "1 comparison", "at least 6", "--seeds"))
    assert "1 seed " in plan_of(seeds=1).warnings[0]
    assert not any("seeds" in line for line in plan_of(seeds=6).warnings)


def test_a_best_setting_needs_more_seeds(tiny_study: Make, tiny_data_dir: Path) -> None:
    study = tiny_study(fixed=None, grid={"lr": [0.1, 0.2, 0.3]}, comparisons=[PAIR, bad_studies.SETTING], seeds=6)
    warning = make_plan(study, tiny_data_dir).warnings[0]
    assert all(part in warning for part in ("6 seeds", "3 comparisons", "at least 7"))


def test_a_data_file_that_is_not_the_published_one_is_a_warning(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(seeds=6)
    assert plan.data.official is False
    (warning,) = plan.warnings
    assert "pneumoniamnist" in warning
    assert "checksum" in warning


def test_arms_with_optimisers_and_windows_of_their_own_are_flagged(tmp_path: Path) -> None:
    plan = make_plan(Study.model_validate(tiny.language_content()), tiny.write_text(tmp_path))
    terms = {term.name: term for term in plan.terms}
    assert not terms["untuned hyper-parameters"].equal
    assert "sgd-summed" in terms["untuned hyper-parameters"].value
    assert not terms["task options"].equal
    assert "window" in terms["task options"].value


def test_a_design_file_is_announced_as_code(tiny_study: Make, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("DESIGNS = {'mine': 1}")
    (warning,) = warnings(tiny_study(seeds=6, designs_from=str(tmp_path / "nets.py")), None, synthetic=False)
    assert "nets.py" in warning
    assert "code" in warning


def test_synthetic_speech_is_a_warning() -> None:
    (warning,) = warnings(Study.load("speech-decoder").quickened(), None, synthetic=True)
    assert "spoken-numbers" in warning
    assert "synthetic" in warning

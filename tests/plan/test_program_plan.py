"""The plan of a program: which changes make new runs, and which do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import own_program
from support.own_program import COMMAND
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import find_plan, make_plan
from tiebreak.plan.program_plan import require_program
from tiebreak.plan.runs import Plan

TUNED: dict[str, Any] = {"grid": {"n": [1, 2]}, "program": {"command": [*COMMAND, "{n}"]}}


def runs(folder: Path, **changes: Any) -> set[str]:
    return set(make_plan(own_program.study(folder, **changes), None).runs)


def test_every_arm_setting_and_seed_is_a_run(tmp_path: Path) -> None:
    plan = make_plan(own_program.study(tmp_path, **TUNED), None)
    assert len(plan.runs) == 2 * 2 * 2
    run = plan.runs[plan.arm("low").run({"n": 2}, 1)]
    assert (run.build, run.options, run.seed, run.label) == ({"good": 0.5}, {"n": 2}, 1, "low n=2 seed 1")
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert plan.arm("low").parameters is None


def test_names_for_people_change_no_run(tmp_path: Path) -> None:
    before = runs(tmp_path)
    arms = [{"name": "first", "with": {"good": 0.9}}, {"name": "second", "with": {"good": 0.5}}]
    assert runs(tmp_path, arms=arms, comparisons=[{"a": "first", "b": "second"}], name="other", data="CIFAR") == before
    (tmp_path / "moved").mkdir()
    assert runs(tmp_path / "moved") == before
    assert runs(tmp_path, seeds=3) > before
    assert runs(tmp_path, program={"timeout": "1 h", "cores": 2}) == before


def test_what_decides_numbers_makes_new_runs(tmp_path: Path) -> None:
    before = runs(tmp_path)
    assert not runs(tmp_path, program={"command": [*COMMAND, "--more"]}) & before
    made = own_program.study(tmp_path)
    (tmp_path / "toy.py").write_text(own_program.PROGRAM + "# changed\n")
    assert not set(make_plan(made, None).runs) & before


def test_a_stored_plan_is_used_until_a_file_changes(tmp_path: Path) -> None:
    made = own_program.study(tmp_path)
    plan = make_plan(made, None)
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    assert find_plan(made, tmp_path, None) == plan
    (tmp_path / "toy.py").write_text("")
    assert find_plan(made, tmp_path, None) != plan


def test_a_missing_program_is_named_with_the_file(tmp_path: Path) -> None:
    made = own_program.study(tmp_path)
    require_program(made)
    (tmp_path / "toy.py").unlink()
    with pytest.raises(TiebreakError, match=r"toy\.toml: program\.command\[4\]: .*toy\.py"):
        require_program(made, "toy.toml")

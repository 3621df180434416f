"""Equal terms of a program: what is checked, and what the plan says it cannot see."""

from __future__ import annotations

from pathlib import Path

from support import own_program
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Term


def terms(folder: Path, **changes: object) -> dict[str, Term]:
    return {term.name: term for term in make_plan(own_program.study(folder, **changes), None).terms}


def test_what_only_the_program_knows_is_not_checked(tmp_path: Path) -> None:
    found = terms(tmp_path)
    assert {name for name, term in found.items() if term.state == "not checked"} == {"data and split", "budget", "code"}
    assert "toy.py" in found["code"].value
    assert "installed packages" in found["code"].value
    assert found["command"].state == "equal"
    assert "good=0.9" in found["values"].value


def test_an_arm_with_its_own_command_is_not_equal(tmp_path: Path) -> None:
    arms = own_program.content()["arms"]
    arms[1]["command"] = [*own_program.COMMAND, "--other"]
    assert terms(tmp_path, arms=arms)["command"].equal is False


def test_too_few_seeds_are_said(tmp_path: Path) -> None:
    assert any("--seeds" in line for line in make_plan(own_program.study(tmp_path), None).warnings)

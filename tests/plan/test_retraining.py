from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support import sample_report
from tiebreak.plan.retraining import explain_retraining
from tiebreak.plan.runs import Plan, Run

CODE = {"design": "d", "task": "t", "training": "r"}


def with_code(plan: Plan, **codes: dict[str, str]) -> Plan:
    """The plan with digests of code; those of an arm can be others."""
    arms = [arm.model_copy(update={"code": codes.get(arm.name, CODE)}) for arm in plan.arms]
    return plan.model_copy(update={"arms": tuple(arms)})


def changed(plan: Plan, arms: tuple[str, ...], change: Callable[[Run], dict[str, Any]]) -> Plan:
    """The plan with other runs of these arms."""
    runs, found = dict(plan.runs), []
    for arm in plan.arms:
        keys = dict(arm.runs)
        for key, identity in arm.runs.items() if arm.name in arms else ():
            run = plan.runs[identity].model_copy(update=change(plan.runs[identity]))
            keys[key] = run.identity
            runs[run.identity] = run
        found.append(arm.model_copy(update={"runs": keys}))
    used = {identity for arm in found for identity in arm.runs.values()}
    return plan.model_copy(
        update={"arms": tuple(found), "runs": {key: run for key, run in runs.items() if key in used}}
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return with_code(sample_report.complete().plan)


def stored(plan: Plan, many: int | None = None) -> tuple[set[str], set[str]]:
    runs = list(plan.runs.values())[:many]
    return {run.identity for run in runs}, {run.trajectory for run in runs}


def test_nothing_is_said_where_nothing_is_trained_again(plan: Plan) -> None:
    assert explain_retraining(plan, plan, *stored(plan)) == ""
    assert explain_retraining(plan, plan, *stored(plan, 3)) == ""  # an interrupted study goes on
    assert explain_retraining(None, plan, (), ()) == ""
    longer = changed(plan, tuple(arm.name for arm in plan.arms), lambda run: {"epochs": 9})
    assert explain_retraining(plan, longer, *stored(plan)) == ""  # more epochs continue what is there


def test_the_design_whose_code_changed_is_named_with_what_is_kept(plan: Plan) -> None:
    now = changed(with_code(plan, unpadded={**CODE, "design": "new"}), ("unpadded",), lambda run: {"source": "new"})
    line = explain_retraining(plan, now, *stored(plan))
    assert line.startswith("60 of 90 runs are kept; ")
    assert "code of cnn-pool-unpadded changed" in line
    assert "30 runs trained again" in line


@pytest.mark.parametrize(
    ("code", "change", "expected"),
    [
        ({**CODE, "training": "new"}, {"source": "new"}, "Tiebreak's training code"),
        ({**CODE, "task": "new"}, {"source": "new"}, "Tiebreak's code of the task"),
        ({}, {"source": "new"}, "Tiebreak's code"),
        (CODE, {"checksum": "other"}, "the data mnist5k changed"),
        (CODE, {"data": "mnist", "checksum": "other"}, "data mnist instead of mnist5k"),
        (CODE, {"comparability": 7}, "this version of Tiebreak"),
        (CODE, {"options": {"divisor": 1}}, "divisor=1"),
        (CODE, {"hypers": {"momentum": 0.5, "lr": 0.1}}, "momentum=0.5 instead of 0"),
    ],
)
def test_every_reason_is_named(plan: Plan, code: dict[str, str], change: dict[str, Any], expected: str) -> None:
    names = tuple(arm.name for arm in plan.arms)
    now = changed(with_code(plan, **dict.fromkeys(names, code)), names, lambda run: change)
    line = explain_retraining(plan, now, *stored(plan))
    assert line.startswith("0 of ")
    assert expected in line


def test_a_folder_whose_plan_cannot_be_read_says_that_nothing_is_kept(plan: Plan) -> None:
    assert "none of the 2 stored runs" in explain_retraining(None, plan, {"a", "b"}, {"c"})
    assert explain_retraining(None, plan, *stored(plan, 2)) == ""

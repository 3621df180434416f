"""One case for each kind of difference between arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support import bad_studies, sample_report
from tiebreak.plan.differences import arm_differences, run_facts
from tiebreak.plan.resolve import complete, hypers, task_options
from tiebreak.plan.runs import Difference, PlannedArm, Run, evaluation_key, run_key
from tiebreak.study import registry
from tiebreak.study.schema import Study

Make = Callable[..., Study]
FIRST = {"name": "first", "design": "mlp"}


def planned(study: Study) -> tuple[list[PlannedArm], dict[str, Run]]:
    """The arms and runs of a study, resolved as the planner does it."""
    arms, runs = [], {}
    for arm in study.arms:
        keys = {}
        for setting in study.settings(arm):
            known = registry.DESIGNS.get(arm.design)
            run = sample_report.make_run(study, arm, setting, 0).model_copy(
                update={
                    "build": complete(known.options, arm.build) if known else dict(arm.build),
                    "options": task_options(study, arm),
                    "optimiser": study.optimiser_of(arm),
                    "hypers": hypers(study, arm, setting),
                    "augment": study.augment_of(arm),
                }
            )
            runs[run.identity] = run
            keys[run_key(setting, 0)] = run.identity
        evaluation = evaluation_key(arm.evaluation)
        arms.append(
            PlannedArm(name=arm.name, design=arm.design, evaluation=evaluation, runs=keys, parameters=1, flops=None)
        )
    return arms, runs


def texts(study: Study) -> list[str]:
    arms, runs = planned(study)
    return [each.text for each in arm_differences(study, arms, runs)["second"]]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({}, []),
        ({"design": "cnn-pool"}, ["design cnn-pool instead of mlp"]),
        ({"build": {"match": "cnn-strided"}}, ["built with match=cnn-strided instead of cnn-pool"]),
        ({"options": {"shuffle_pixels": True}}, ["shuffle_pixels=True instead of False"]),
        ({"optimiser": {"kind": "adam"}}, ["optimiser adam instead of sgd"]),
        ({"optimiser": {"schedule": {"kind": "cosine"}}}, ["schedule cosine instead of constant"]),
        ({"optimiser": {"schedule": {"warmup_epochs": 2}}}, ["schedule with warmup_epochs=2 instead of 0"]),
        ({"fixed": {"momentum": 0.9}}, ["momentum=0.9 instead of 0"]),
        ({"fixed": {"dropout": 0.5}}, ["dropout=0.5 instead of the design's own"]),
        ({"fixed": {"clip_norm": 1.0}}, ["clip_norm=1 instead of 0"]),
        ({"evaluation": {"shift": 2}}, ["tested with shift=2 instead of 0"]),
        ({"epochs_times": 3}, ["epochs=3 instead of 1"]),
        (
            {"optimiser": {"kind": "adam"}, "fixed": {"beta1": 0.5}},
            ["optimiser adam instead of sgd", "beta1=0.5"],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_every_kind_of_difference_is_named(tiny_study: Make, second: dict[str, Any], expected: list[str]) -> None:
    arms = [FIRST, {**FIRST, "name": "second", **second}]
    assert texts(tiny_study(arms=arms, comparisons=[{"a": "first", "b": "second"}])) == expected


def test_a_protocol_is_named_with_the_options_that_it_changes(tiny_study: Make) -> None:
    arms = [FIRST, {**FIRST, "name": "second", "protocol": "as-reported"}]
    found = texts(tiny_study(data="octmnist", arms=arms, comparisons=[{"a": "first", "b": "second"}]))
    assert "protocol as-reported instead of audited" in found
    assert any("test_images" in text for text in found)


def test_another_grid_is_named(tiny_study: Make) -> None:
    arms = [FIRST, {**FIRST, "name": "second"}]
    study = tiny_study(arms=arms, comparisons=[{"a": "first", "b": "second"}], **bad_studies.TUNED)
    planned_arms, runs = planned(study)
    fewer = planned_arms[1].model_copy(update={"runs": dict(list(planned_arms[1].runs.items())[:1])})
    (found,) = arm_differences(study, [planned_arms[0], fewer], runs)["second"]
    assert (found.kind, found.name, found.text) == ("grid", "lr", "lr tuned over 0.1 instead of 0.1, 0.01")
    untuned = found.model_copy(update={"own": None})
    assert untuned.text == "lr not tuned instead of tuned over 0.1, 0.01"


def test_options_of_another_design_are_named_only_where_the_study_sets_them(tiny_study: Make) -> None:
    arms = [
        {**FIRST, "build": {"match": "cnn-strided"}},
        {"name": "second", "design": "cnn-pool", "fixed": {"momentum": 0.5}},
    ]
    study = tiny_study(arms=arms, comparisons=[{"a": "first", "b": "second"}])
    assert texts(study) == ["design cnn-pool instead of mlp", "momentum=0.5 instead of 0"]


def test_a_key_that_a_run_gets_later_is_compared_without_a_change_here() -> None:
    class Later(Run):
        augmentation: dict[str, float]
        rounding: str

    study = sample_report.complete().study
    run = sample_report.make_run(study, study.arms[0], {"lr": 0.1}, 0)
    facts = run_facts(Later(**run.model_dump(), augmentation={"crop": 4}, rounding="down"))
    assert facts["augmentation", "crop"] == 4
    assert facts["rounding", "rounding"] == "down"
    assert Difference(kind="precision", name="precision", first="float32", own="bf16").text == (
        "precision bf16 instead of float32"
    )
    assert Difference(kind="init", name="init", first=None, own="orthogonal").text.endswith("the design's own")


def test_what_another_rule_or_schedule_does_not_have_is_no_difference(tiny_study: Callable[..., Study]) -> None:
    plateau = {"kind": "sgd-nesterov", "schedule": {"kind": "plateau"}}
    arms = [
        {"name": "first", "design": "cnn-pool", "optimiser": plateau, "augment": {"shift": 2, "flip": True}},
        {"name": "second", "design": "cnn-pool", "optimiser": {"kind": "adam"}, "grid": {"lr": [0.1]}},
    ]
    study = tiny_study(arms=arms, comparisons=[{"a": "first", "b": "second"}], fixed=None)
    found = "; ".join(texts(study))
    assert all(part in found for part in ("adam instead of sgd-nesterov", "augment none instead of flip, shift 2"))
    assert not any(part in found for part in ("design's own", "crop", "factor", "momentum"))

"""The registry and the catalog agree: same names, same families; every task accepts what the registry allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tiebreak import catalog
from tiebreak.data.images.image_data import ImageData
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.study.registry import Option, Scalar
from tiebreak.tasks.classify import Classify

TASK_OPTIONS = [("classify", option) for option in registry.TASKS["classify"].options]
EVALUATIONS = [("classify", option) for option in registry.TASKS["classify"].evaluation]


def values(option: Option) -> list[Scalar]:
    """The default and the outermost values that a study may give."""
    if option.choices:
        return list(option.choices)
    if isinstance(option.default, bool):
        return [False, True]
    kind = type(option.default)
    return [option.default, *(kind(end) for end in (option.low, option.high) if end is not None)]


@pytest.fixture(scope="module")
def data(tiny_data_dir: Path) -> ImageData:
    return cast(Classify, catalog.TASKS["classify"]).load("pneumoniamnist", tiny_data_dir)


def test_designs_are_those_of_the_catalog_with_their_families() -> None:
    catalogued = {name: design.family for name, design in catalog.DESIGNS.items()}
    assert {name: design.family for name, design in registry.DESIGNS.items()} == catalogued
    assert all(design.name == name for name, design in catalog.DESIGNS.items())


def test_tasks_are_those_of_the_catalog() -> None:
    assert registry.TASKS.keys() == catalog.TASKS.keys()


def test_every_family_of_a_design_or_data_set_has_a_task() -> None:
    families = {task.family for task in registry.TASKS.values()}
    assert {design.family for design in registry.DESIGNS.values()} <= families
    assert {entry.family for entry in registry.DATA.values()} <= families


@pytest.mark.parametrize(("task", "option"), TASK_OPTIONS)
def test_the_task_accepts_every_value_of_an_option(task: str, option: str, data: ImageData) -> None:
    for value in values(registry.TASKS[task].options[option]):
        if (option, value) != ("test_images", "as-reported"):  # for octmnist only
            split = catalog.TASKS[task].split(data, "test", complete(registry.TASKS[task].options, {option: value}), {})
            assert len(split["labels"]) == 24


@pytest.mark.parametrize(("task", "option"), EVALUATIONS)
def test_the_task_accepts_every_value_of_an_evaluation_option(task: str, option: str, data: ImageData) -> None:
    options = complete(registry.TASKS[task].options, {})
    for value in values(registry.TASKS[task].evaluation[option]):
        split = catalog.TASKS[task].split(data, "test", options, {option: value})
        assert split["images"].shape[1:] == (1, 28, 28)
        assert len(split["images"]) == len(split["labels"]) >= 24


def test_an_option_changes_what_the_task_makes_of_the_data(data: ImageData) -> None:
    task, known = catalog.TASKS["classify"], registry.TASKS["classify"].options
    plain = task.split(data, "test", complete(known, {}), {})["images"]
    changed: list[tuple[dict[str, Scalar], dict[str, Scalar]]] = [
        ({"divisor": 256}, {}), ({"shuffle_pixels": True}, {}), ({}, {"shift": 2})
    ]  # fmt: skip
    for options, evaluation in changed:
        assert not (plain == task.split(data, "test", complete(known, options), evaluation)["images"]).all()


@pytest.mark.parametrize("name", registry.HYPERS)
def test_the_default_of_a_hyper_parameter_lies_within_its_bounds(name: str) -> None:
    hyper = registry.HYPERS[name]
    assert hyper.default is None or hyper.low <= hyper.default <= hyper.high


def test_every_entry_is_described_in_one_line() -> None:
    tables: tuple[Mapping[str, Any], ...] = (registry.DESIGNS, registry.TASKS, registry.DATA, registry.HYPERS)
    entries = [entry for table in tables for entry in table.values()]
    options = [
        option for task in registry.TASKS.values() for option in (*task.options.values(), *task.evaluation.values())
    ]
    for entry in (*entries, *options):
        assert entry.line
        assert "\n" not in entry.line

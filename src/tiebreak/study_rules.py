"""What a study file must fulfil beyond the types of its keys: names that exist, numbers in range, arms that are there.

Every rule raises ValueError with the key at the front; the reader adds the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tiebreak import names
from tiebreak.errors import nearest
from tiebreak.names import Option, Scalar

if TYPE_CHECKING:
    from tiebreak.study import Arm, Study


def setting_label(setting: Mapping[str, float]) -> str:
    """How a setting is written everywhere: `lr=0.01`.

    >>> setting_label({"lr": 0.01, "dropout": 0.7})
    'lr=0.01 dropout=0.7'
    """
    return " ".join(f"{key}={value:g}" for key, value in setting.items()) or "default"


def check(study: Study) -> None:
    """Raise ValueError at the first rule that the study breaks."""
    _member("task", study.task, names.TASKS)
    task = names.TASKS[study.task]
    _member("data", study.data, [key for key, data in names.DATA.items() if data.family == task.family])
    _check_protocol("protocol", study.protocol, study, task)
    _member("metric", study.metric, task.metrics)
    check_options("options", study.options, task.options)
    _check_hypers("fixed", study.fixed)
    for key, values in study.grid.items():
        _member("grid", key, names.HYPERS)
        if len(set(values)) != len(values):
            raise ValueError(f"grid.{key}: a value is there twice")
        for value in values:
            _check_hypers("grid", {key: value})
    for index, arm in enumerate(study.arms, start=1):
        _check_arm(f"arms[{index}]", arm, study, task)
    _unique("arms", [arm.name for arm in study.arms])
    _check_comparisons(study, task)
    for index, claim in enumerate(study.claims, start=1):
        _member(f"claims[{index}].comparison", claim.comparison, [item.name for item in study.comparisons])
    for index, reported in enumerate(study.reported, start=1):
        _member(f"reported[{index}].arm", reported.arm, [arm.name for arm in study.arms])


def _check_arm(key: str, arm: Arm, study: Study, task: names.TaskName) -> None:
    designs = {name: design for name, design in names.DESIGNS.items() if design.family == task.family}
    _member(f"{key}.design", arm.design, designs)
    check_options(f"{key}.build", arm.build, designs[arm.design].options)
    check_options(f"{key}.options", arm.options, task.options)
    check_options(f"{key}.evaluation", arm.evaluation, task.evaluation)
    _check_hypers(f"{key}.fixed", arm.fixed)
    if arm.protocol is not None:
        _check_protocol(f"{key}.protocol", arm.protocol, study, task)
    for name in arm.fixed:
        if name in study.grid:
            raise ValueError(f"{key}.fixed.{name}: it is in the grid, and every arm gets the same grid; remove one")


def _check_protocol(key: str, name: str, study: Study, task: names.TaskName) -> None:
    _member(key, name, task.protocols)
    known = task.protocols[name].data
    if known and study.data not in known:
        raise ValueError(f"{key}: {name!r} is a protocol for {', '.join(known)}, not for {study.data}; use 'audited'")


def _check_comparisons(study: Study, task: names.TaskName) -> None:
    arms = [arm.name for arm in study.arms]
    for index, item in enumerate(study.comparisons, start=1):
        key = f"comparisons[{index}]"
        for side, arm in zip(("arm",) if item.kind == "setting" else "abcd", item.arms(), strict=False):
            _member(f"{key}.{side}", arm, arms)
        if len(set(item.arms())) != len(item.arms()):
            raise ValueError(f"{key}: an arm is compared with itself")
        if item.metric is not None:
            _member(f"{key}.metric", item.metric, task.metrics)
        if item.kind == "setting" and dict(item.expect) not in study.settings():
            points = "; ".join(setting_label(point) for point in study.settings())
            raise ValueError(f"{key}.expect: {setting_label(item.expect)} is not in the grid ({points})")
        if item.kind == "setting" and len(study.settings()) < 2:
            raise ValueError(f"{key}: the grid has a single setting; nothing to choose from")
    _unique("comparisons", [item.name for item in study.comparisons])
    primary = sum(item.primary for item in study.comparisons)
    if primary != 1:
        raise ValueError(
            f"comparisons: exactly one is primary, here {primary}; set primary = true on the main question"
        )


def check_options(key: str, given: Mapping[str, Scalar], known: Mapping[str, Option]) -> None:
    """Raise ValueError unless every given option is known, of the right type and within its bounds."""
    for name, value in given.items():
        _member(key, name, known)
        option = known[name]
        if type(value) is not type(option.default) and not (isinstance(option.default, float) and type(value) is int):
            raise ValueError(f"{key}.{name}: should be {type(option.default).__name__}, not {value!r}")
        if option.choices and value not in option.choices:
            raise ValueError(f"{key}.{name}: {value!r} is not one of {', '.join(map(repr, option.choices))}")
        if not isinstance(value, str) and not _within(value, option.low, option.high):
            raise ValueError(f"{key}.{name}: {value!r} is outside {option.low} to {option.high}")


def _check_hypers(key: str, given: Mapping[str, float]) -> None:
    for name, value in given.items():
        _member(key, name, names.HYPERS)
        hyper = names.HYPERS[name]
        if not _within(value, hyper.low, hyper.high):
            raise ValueError(f"{key}.{name}: {value!r} is outside {hyper.low:g} to {hyper.high:g}")


def _within(value: float, low: float | None, high: float | None) -> bool:
    return not math.isnan(value) and (low is None or value >= low) and (high is None or value <= high)


def _member(key: str, name: str, valid: Iterable[str]) -> None:
    if name not in valid:
        raise ValueError(f"{key}: unknown name {name!r}; {nearest(name, valid)}")


def _unique(key: str, given: list[str]) -> None:
    for name in given:
        if given.count(name) > 1:
            raise ValueError(f"{key}: the name {name!r} is there twice")

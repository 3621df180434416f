"""Rules of a study file beyond the types of its keys: names exist, numbers are in range, comparisons name arms.

Every rule raises ValueError with the key first; `parsing` adds the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak.errors import nearest
from tiebreak.study import program_rules, registry
from tiebreak.study.base import setting_label
from tiebreak.study.design_file import declared_names
from tiebreak.study.own_task_keys import FUNCTIONS, NO_DATA
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.registry import OWN_TASK, Option, Scalar
from tiebreak.text import listed

if TYPE_CHECKING:
    from tiebreak.study.schema import Arm, Claim, Reported, Study

COLUMNS = ("arm", "design", "seed", "status", "chosen")  # of `result.rows`, beside hyper-parameters and metrics
MOST_RUNS = 200_000  # of a study: a plan lists each
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def check(study: Study) -> None:
    """Raise ValueError at the first rule that the study breaks."""
    _member("task", study.task, [*registry.TASKS, OWN_TASK, PROGRAM])
    _check_own_task(study)
    if study.task == PROGRAM:
        _check_size(study)
        program_rules.check(study)
        _check_names(study)
        return
    if study.program is not None:
        raise ValueError("program: only with task = 'program'")
    task = study.entry
    _check_data("data", study.data, task)
    _check_protocol("protocol", study.protocol, study.data, task)
    _member("metric", study.metric, task.metrics)
    for name in declared_names(Path(study.designs_from)) if study.designs_from is not None else ():
        if name in registry.DESIGNS:
            raise ValueError(f"designs_from: {name!r} is a design of the catalog; give yours another name")
    check_options("options", study.options, task.options)
    if task.ordered and study.budget.batch != 1:
        raise ValueError(f"budget.batch: should be 1: the task {study.task} trains on one window after the other")
    _check_size(study)
    _check_grid("grid", study.grid)
    _check_fixed("fixed", study.fixed, study.grid)
    for index, arm in enumerate(study.arms, start=1):
        _check_arm(f"arms[{index}]", arm, study, task)
    _check_names(study)
    _unique("claims", [claim.id for claim in study.claims])
    for index, claim in enumerate(study.claims, start=1):
        _member(f"claims[{index}].comparison", claim.comparison, [item.name for item in study.comparisons])
        for name in claim.also:
            _member(f"claims[{index}].also", name, [item.name for item in study.comparisons])
        _check_origin(f"claims[{index}]", claim, task)
    for index, reported in enumerate(study.reported, start=1):
        _check_reported(f"reported[{index}]", reported, study, task)
    _check_quick(study, task)


def _check_own_task(study: Study) -> None:
    """Keys that only an own task has, and those that it has to have."""
    if study.task != OWN_TASK:
        if study.metrics:
            raise ValueError("metrics: only with task = 'own'; the metrics of other tasks are known")
        return
    if study.designs_from is None:
        raise ValueError(
            f"designs_from: required with task = 'own': the Python file with DESIGNS and {listed(FUNCTIONS)}"
        )
    if not study.metrics:
        raise ValueError("metrics: required with task = 'own', such as metrics = { error = \"min\" }")
    for name in study.metrics:
        if name in COLUMNS or name in registry.HYPERS or name.startswith(("val_", "train_")):
            raise ValueError(f"metrics: {name!r} is the name of something else in tables of runs; give another one")
    if study.metrics.get("loss", "min") != "min":
        raise ValueError("metrics.loss: the loss is made smaller by training; call a metric of yours something else")
    if any("label_smoothing" in given for arm in study.arms for given in (study.fixed, arm.fixed, study.grid_of(arm))):
        raise ValueError("label_smoothing: for the losses of Tiebreak's tasks; smooth the labels in your own `loss`")


def _check_names(study: Study) -> None:
    """Arms and comparisons have names of their own, and name arms that are there."""
    _unique("arms", [arm.name for arm in study.arms])
    quick = study.quick
    for key, names in (
        ("quick.without", quick.without),
        ("quick.build_of", quick.build_of),
        ("quick.grid_of", quick.grid_of),
    ):
        for name in names:
            _member(key, name, [arm.name for arm in study.arms])
    _check_comparisons(study, study.entry)


def _check_size(study: Study) -> None:
    """Raise for a grid that nobody can train, before its settings are listed."""
    own = sum(math.prod(len(values) for values in arm.grid.values()) for arm in study.arms if arm.grid is not None)
    sharing = sum(arm.grid is None for arm in study.arms)
    for key, grid in (("grid", study.grid), ("quick.grid", study.quick.grid or {})):
        settings = math.prod(len(values) for values in grid.values())
        if (runs := (settings * sharing + own) * study.most_seeds) > MOST_RUNS:
            raise ValueError(
                f"{key}: {settings:,} settings for {sharing:,} arms, {own:,} of arms with a grid of their own and "
                f"{study.most_seeds:,} seeds are {runs:,} runs; at most {MOST_RUNS:,}: use fewer values or seeds"
            )


def _check_arm(key: str, arm: Arm, study: Study, task: registry.TaskEntry) -> None:
    designs = {name: design for name, design in registry.DESIGNS.items() if design.family == task.family}
    own = declared_names(Path(study.designs_from)) if study.designs_from is not None else []
    _member(f"{key}.design", arm.design, [*designs, *own])
    if arm.design in designs:  # the options of a user's design are known to its code only
        check_options(f"{key}.build", arm.build, designs[arm.design].options)
    for name, value in (("with", arm.with_values), ("command", arm.command), ("function", arm.function)):
        if value:
            raise ValueError(f"{key}.{name}: only with task = 'program'")
    check_options(f"{key}.options", arm.options, task.options)
    for name in arm.options:
        if task.options[name].of_data:
            raise ValueError(f"{key}.options.{name}: all arms must load the same data; move it to the study's options")
    check_options(f"{key}.evaluation", arm.evaluation, task.evaluation)
    _check_grid(f"{key}.grid", arm.grid or {})
    _check_fixed(f"{key}.fixed", arm.fixed, study.grid_of(arm))
    _check_batch(f"{key}.batch", arm, study, task)
    if arm.protocol is not None:
        _check_protocol(f"{key}.protocol", arm.protocol, study.data, task)
    _check_evaluation_that_trains(key, arm, study, task)
    if task.family != "classifier" and study.augment_of(arm) is not None:
        where = f"{key}.augment" if arm.augment is not None else "augment"
        raise ValueError(f"{where}: changes images, which the task {study.task} has none of; remove it")


def _check_batch(key: str, arm: Arm, study: Study, task: registry.TaskEntry) -> None:
    if task.ordered and study.batch(arm) != 1:
        raise ValueError(f"{key}: should be 1: the task {study.task} trains on one window after the other")
    if study.budget.equal == "steps" and (arm.epochs_times * study.budget.epochs * study.batch(arm)) % (
        study.budget.batch
    ):
        raise ValueError(
            f"{key}: {study.batch(arm)} examples in the place of {study.budget.batch} are no whole number of epochs at "
            f"equal steps; change budget.epochs ({study.budget.epochs}) or the batch size"
        )


def _check_evaluation_that_trains(key: str, arm: Arm, study: Study, task: registry.TaskEntry) -> None:
    """Averaged weights are for evaluation in evaluation mode; report R4's evaluation trains, with dropout."""
    options = {**task.protocols[arm.protocol or study.protocol].options, **study.options, **arm.options}
    trains, mode = options.get("evaluation_trains"), arm.evaluation.get("training_mode")
    if trains and mode:
        raise ValueError(
            f"{key}.evaluation.training_mode: evaluation_trains is on, and its passes are in training mode anyway;"
            " remove this key, or set options.evaluation_trains to false"
        )
    averaged = any("ema" in given for given in (study.fixed, arm.fixed, study.grid_of(arm)))
    if averaged and (trains or mode):
        name = "evaluation_trains" if trains else "evaluation.training_mode"
        raise ValueError(f"{key}: ema averages weights for evaluation, but {name} is on; remove one of them")


def _check_data(key: str, name: str, task: registry.TaskEntry) -> None:
    if task.family == OWN_TASK:
        if name != NO_DATA and not registry.is_path(name):
            raise ValueError(f"{key}: {name!r}: an own task reads its own data: a path with a slash, or no data key")
        return
    known = [known for known, data in registry.DATA.items() if data.family == task.family]
    if name in registry.DATA and name not in known:
        tasks = {entry.family: other for other, entry in registry.TASKS.items()}
        own = f"{name!r} is data of the task {tasks[registry.DATA[name].family]!r}"
        raise ValueError(f"{key}: {own}; for {tasks[task.family]!r} there are {', '.join(known)} ({registry.OWN_DATA})")
    if not registry.is_path(name) and name not in known:
        raise ValueError(f"{key}: unknown name {name!r}; {nearest(name, known)} ({registry.OWN_DATA})")


def _check_protocol(key: str, name: str, data: str, task: registry.TaskEntry) -> None:
    _member(key, name, task.protocols)
    known = task.protocols[name].data
    if known and data not in known:
        raise ValueError(f"{key}: {name!r} is a protocol for {', '.join(known)}, not for {data}; use 'audited'")


def _check_origin(key: str, item: Claim | Reported, task: registry.TaskEntry) -> None:
    if item.data is not None:
        _check_data(f"{key}.data", item.data, task)
    if item.protocol is not None:
        _member(f"{key}.protocol", item.protocol, task.protocols)


def _check_reported(key: str, item: Reported, study: Study, task: registry.TaskEntry) -> None:
    _member(f"{key}.arm", item.arm, [arm.name for arm in study.arms])
    validation = [f"val_{name}" for name in task.metrics]
    _member(f"{key}.metric", item.metric, [*task.metrics, *validation, "train_loss", "train_loss_running"])
    if study.grid != study.quick.grid:  # the smaller grid of the quick version may lack a published setting
        _check_setting(f"{key}.setting", item.setting, study, item.arm)
    _check_origin(key, item, task)


def _check_quick(study: Study, task: registry.TaskEntry) -> None:
    quick = study.quick
    if quick.protocol is not None:
        _member("quick.protocol", quick.protocol, task.protocols)
    if quick.data is not None:
        _check_data("quick.data", quick.data, task)
        _check_protocol("quick.protocol", quick.protocol or study.protocol, quick.data, task)
    _check_grid("quick.grid", quick.grid or {})
    for name, grid in quick.grid_of.items():
        _check_grid(f"quick.grid_of.{name}", grid)
    check_options("quick.options", quick.options, task.options)
    _check_hypers("quick.fixed", quick.fixed)
    designs = [design for design in registry.DESIGNS.values() if design.family == task.family]
    for name in quick.build:  # an option that some arms lack is skipped there, but one that no design has is a mistake
        _member("quick.build", name, {option for design in designs for option in design.options})
    for arm in study.arms:
        if arm.name in quick.build_of and arm.design in registry.DESIGNS:
            known = registry.DESIGNS[arm.design].options
            check_options(f"quick.build_of.{arm.name}", quick.build_of[arm.name], known)


def _check_comparisons(study: Study, task: registry.TaskEntry) -> None:
    arms = [arm.name for arm in study.arms]
    for index, item in enumerate(study.comparisons, start=1):
        key = f"comparisons[{index}]"
        for side, arm in zip("abcd" if item.kind in ("pair", "interaction") else ("arm",), item.arms(), strict=False):
            _member(f"{key}.{side}", arm, arms)
        if len(set(item.arms())) != len(item.arms()):
            raise ValueError(f"{key}: compares an arm with itself; name different arms")
        if item.metric is not None:
            _member(f"{key}.metric", item.metric, task.metrics)
            if item.metric != study.metric and item.margin is None:
                raise ValueError(
                    f"{key}.margin: required, since the study's margin is for {study.metric}, not for {item.metric}"
                )
        if item.kind in ("order", "agreement"):
            _check_metrics(key, item.metrics, item.primary, task)
        if item.kind == "setting":
            _check_setting(f"{key}.expect", item.expect, study, item.arm)
        if item.kind == "setting" and len(study.settings(item.arm)) < 2:
            raise ValueError(f"{key}: the grid has only one setting; add values to the grid or remove this comparison")
    _unique("comparisons", [item.name for item in study.comparisons])
    primary = sum(item.primary for item in study.comparisons)
    if primary != 1:
        raise ValueError(f"comparisons: {primary} are primary; set primary = true for exactly one, the main question")


def _check_metrics(key: str, metrics: tuple[str, ...], primary: bool, task: registry.TaskEntry) -> None:
    if primary:
        raise ValueError(f"{key}.primary: a comparison of metrics cannot be primary; choose a comparison of arms")
    _unique(f"{key}.metrics", list(metrics))
    for name in metrics:
        _member(f"{key}.metrics", name, task.metrics)
        if task.metrics[name].goal != "max":
            raise ValueError(f"{key}.metrics: a lower {name} is better; use only metrics where higher is better")


def check_options(key: str, given: Mapping[str, Scalar], known: Mapping[str, Option]) -> None:
    """Raise ValueError unless every option is known, of the right type and within its bounds."""
    for name, value in given.items():
        _member(key, name, known)
        check_option(f"{key}.{name}", value, known[name])


def check_option(key: str, value: Scalar, option: Option) -> None:
    """Raise ValueError unless the value is of the right type and within its bounds."""
    if type(value) is not type(option.default) and not (isinstance(option.default, float) and type(value) is int):
        raise ValueError(f"{key}: should be {TYPE_NAMES[type(option.default)]}, not {value!r}")
    if option.choices and value not in option.choices:
        raise ValueError(f"{key}: should be one of {', '.join(map(repr, option.choices))}, not {value!r}")
    if not isinstance(value, str):
        _check_range(key, value, option.low, option.high)


def _check_setting(key: str, setting: Mapping[str, float], study: Study, arm: str) -> None:
    if setting not in study.settings(arm):
        points = "; ".join(setting_label(point) for point in study.settings(arm))
        raise ValueError(f"{key}: {setting_label(setting)} is not in the grid ({points})")


def _check_grid(key: str, grid: Mapping[str, tuple[float, ...]]) -> None:
    for name, values in grid.items():
        _member(key, name, registry.HYPERS)
        if len(set(values)) != len(values):
            raise ValueError(f"{key}.{name}: a value occurs twice in {', '.join(map(str, values))}; remove one")
        for value in values:
            _check_hypers(key, {name: value})


def _check_fixed(key: str, given: Mapping[str, float], grid: Mapping[str, tuple[float, ...]]) -> None:
    _check_hypers(key, given)
    for name in given:
        if name in grid:
            raise ValueError(f"{key}.{name}: also in the grid; remove one of the two, or give arms grids of their own")


def _check_hypers(key: str, given: Mapping[str, float]) -> None:
    for name, value in given.items():
        _member(key, name, registry.HYPERS)
        _check_range(f"{key}.{name}", value, registry.HYPERS[name].low, registry.HYPERS[name].high)


def _check_range(key: str, value: float, low: float | None, high: float | None) -> None:
    if not math.isnan(value) and (low is None or value >= low) and (high is None or value <= high):
        return
    bounds = (f"{word} {bound:g}" for word, bound in (("at least", low), ("at most", high)) if bound is not None)
    raise ValueError(f"{key}: should be {' and '.join(bounds) or 'a number'}, not {value!r}")


def _member(key: str, name: str, valid: Iterable[str]) -> None:
    if name not in valid:
        raise ValueError(f"{key}: unknown name {name!r}; {nearest(name, valid)}")


def _unique(key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{key}: the name {name!r} is used twice; rename one")

"""The options and hyper-parameters of a run, with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.study import registry
from tiebreak.study.optimiser import KIND_DEFAULTS
from tiebreak.study.registry import Option, Scalar
from tiebreak.study.schema import Arm, Comparison, Study


def complete(known: Mapping[str, Option], given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """A value for every known option: the given one, or the default."""
    return {name: given.get(name, option.default) for name, option in known.items()}


def task_options(study: Study, arm: Arm) -> dict[str, Scalar]:
    """The arm's task options: defaults, then the protocol's, then the study's, then the arm's own."""
    task = study.entry
    protocol = task.protocols[arm.protocol or study.protocol].options
    return complete(task.options, {**protocol, **study.options, **arm.options})


def hypers(study: Study, arm: Arm, setting: Mapping[str, float]) -> dict[str, float | None]:
    """Every hyper-parameter of a run: defaults, those of the update rule, then the study's, the arm's, the setting's.

    An optional one that is at its default is left out: it changes nothing, and runs without it keep their identity.
    """
    defaults = {name: hyper.default for name, hyper in registry.HYPERS.items()}
    found = {**defaults, **KIND_DEFAULTS.get(study.optimiser_of(arm).kind, {}), **study.fixed, **arm.fixed, **setting}
    unset = {name for name, hyper in registry.HYPERS.items() if hyper.optional and found[name] == hyper.default}
    return {name: value for name, value in found.items() if name not in unset}


# Hyper-parameters that only some update rules use; all others matter with every rule.
RULE_HYPERS: Mapping[str, tuple[str, ...]] = {
    "momentum": ("sgd", "sgd-nesterov", "rmsprop"),
    "beta1": ("adam", "adamw", "nadam", "lion"),
    "beta2": ("adam", "adamw", "nadam", "rmsprop", "lion"),
    "eps": ("adam", "adamw", "nadam", "rmsprop", "adagrad"),
}


def uses_hyper(kind: str, name: str) -> bool:
    """Whether an update rule uses a hyper-parameter; tests/plan/test_resolve.py compares the table with the rules."""
    return name not in RULE_HYPERS or kind in RULE_HYPERS[name]


def comparison_count(study: Study) -> int:
    """The number of comparisons in Holm's correction.

    A best-setting comparison counts once per other setting, an order of metrics once per two neighbours.
    """
    return sum(_count(study, item) for item in study.comparisons)


def _count(study: Study, item: Comparison) -> int:
    if item.kind == "order":
        return len(item.metrics) - 1
    return len(study.settings(item.arm)) - 1 if item.kind == "setting" else 1

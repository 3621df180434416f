"""What makes one arm different from another, and one run from another: derived from what is trained, key by key.

Every key of a run is compared, also those that are added later; nothing is listed by hand. No torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tiebreak.plan.resolve import RULE_HYPERS, complete, uses_hyper
from tiebreak.plan.runs import Difference, PlannedArm, Run
from tiebreak.study import registry
from tiebreak.study.registry import Scalar
from tiebreak.study.schema import Arm, Study

Facts = dict[tuple[str, str], Scalar | None]  # (kind, name) -> value

# Keys of a run that say what it is compared on, not what is different: equal for all arms, or no choice of the study.
NOT_COMPARED = {"task", "data", "checksum", "source", "comparability", "seed", "setting", "evaluations", "monitor"}
KINDS = {"epochs": "budget", "batch": "budget"}  # of a single value; else its own name


def run_facts(run: Run) -> Facts:
    """Everything that a study decides about a run. A hyper-parameter that its update rule does not use is absent."""
    found: Facts = {}
    for key in type(run).model_fields:
        if key not in NOT_COMPARED:
            found.update(_flat(KINDS.get(key, key), key, getattr(run, key)))
    if run.augment is not None:  # one thing, not a list of everything that it could do
        found = {key: value for key, value in found.items() if key[0] != "augment"}
    found["augment", "augment"] = run.augment.text() if run.augment is not None else "none"
    for name in run.hypers:
        if not uses_hyper(run.optimiser.kind, name):
            del found["hypers", name]
    return found


def _flat(kind: str, name: str, value: Any) -> Iterator[tuple[tuple[str, str], Scalar | None]]:
    if isinstance(value, BaseModel):
        for key in type(value).model_fields:
            inner = getattr(value, key)
            nested = key if isinstance(inner, BaseModel | Mapping) else kind
            yield from _flat(nested, kind if key == "kind" else key, inner)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(kind, str(key), inner)
    elif isinstance(value, list | tuple):
        yield (kind, name), ", ".join(map(str, value))
    else:
        yield (kind, name), value


def differences(first: Mapping[tuple[str, str], Scalar | None], own: Facts) -> list[Difference]:
    """What `own` has otherwise than `first`, in the order of the keys."""
    return [
        Difference(kind=kind, name=name, first=first.get((kind, name)), own=own.get((kind, name)))
        for kind, name in dict.fromkeys((*first, *own))
        if first.get((kind, name)) != own.get((kind, name))
    ]


def arm_differences(
    study: Study, arms: Sequence[PlannedArm], runs: Mapping[str, Run]
) -> dict[str, tuple[Difference, ...]]:
    """What makes each arm different from the first one of the study, by the arm's name."""
    facts = {arm.name: _arm_facts(study, study.arm(arm.name), arm, runs) for arm in arms}
    first = facts[arms[0].name]
    return {name: tuple(_essential(differences(first, own), study.arm(name))) for name, own in facts.items()}


def _arm_facts(study: Study, arm: Arm, planned: PlannedArm, runs: Mapping[str, Run]) -> Facts:
    own = [runs[identity] for identity in planned.runs.values()]
    found = {
        key: value for key, value in run_facts(own[0]).items() if key[0] != "hypers" or key[1] not in study.grid_of(arm)
    }
    for name, hyper in registry.HYPERS.items():
        if hyper.optional and name not in study.grid_of(arm):  # a run that does without has no such key
            found.setdefault(("hypers", name), hyper.default)
    found["protocol", "protocol"] = arm.protocol or study.protocol
    for name, value in complete(study.entry.evaluation, arm.evaluation).items():
        found["evaluation", name] = value
    for name in dict.fromkeys(name for run in own for name in run.setting):
        values = dict.fromkeys(run.setting[name] for run in own if name in run.setting)
        found["grid", name] = ", ".join(f"{value:g}" for value in values)
    return found


def _essential(found: Sequence[Difference], arm: Arm) -> Iterator[Difference]:
    """Without what only follows from another difference: options and rules that the other side does not have."""
    other_design = any(each.kind == "design" for each in found)
    known = registry.DESIGNS[arm.design].options if arm.design in registry.DESIGNS else {}
    for each in found:
        if each.kind == "build" and other_design:  # the options of another design are no change of this one's
            if each.own is not None and not (each.name in known and known[each.name].default == each.own):
                yield each.model_copy(update={"first": None})
        elif not _follows_from_the_rule(each, arm):
            yield each


def _follows_from_the_rule(each: Difference, arm: Arm) -> bool:
    """Whether a difference is only that one of two update rules or schedules does not have a key."""
    if each.own is None and (each.kind == "schedule" or (each.kind == "hypers" and each.name in RULE_HYPERS)):
        return True
    return each.kind == "hypers" and each.name not in arm.fixed and _is_of_one_rule(each)


def _is_of_one_rule(each: Difference) -> bool:
    """Whether only one of two update rules has a hyper-parameter, at its default."""
    default = registry.HYPERS[each.name].default if each.name in registry.HYPERS else None
    return default is not None and (each.first, each.own) in ((None, default), (default, None))

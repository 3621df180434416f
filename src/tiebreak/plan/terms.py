"""Equal terms: what is equal for all arms of a study and what is not."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.plan.resolve import task_options
from tiebreak.plan.runs import PlannedArm, Term
from tiebreak.study.schema import Study
from tiebreak.text import listed, number_of

KINDS = {  # of differences between arms, by the term that they belong to; any other kind is a term of its own
    "task options": ("options", "protocol"),
    "budget": ("budget",),
    "tuning": ("grid",),
    "untuned hyper-parameters": ("optimiser", "schedule", "hypers"),
    "evaluation": ("evaluation",),
}
OF_THE_DESIGN = ("design", "build")  # what is compared


def equal_terms(study: Study, arms: list[PlannedArm]) -> tuple[Term, ...]:
    """What is equal for all arms, and what is not: for each arm, in what it differs from the first."""
    parameters = {arm.parameters for arm in arms}
    flops = {arm.flops for arm in arms}
    first, rule = study.arms[0], study.optimiser_of(study.arms[0])
    grid = "; ".join(f"{name} in {', '.join(f'{value:g}' for value in values)}" for name, values in study.grid.items())
    options = ", ".join(f"{key}={value}" for key, value in task_options(study, first).items())
    budget = f"{number_of(study.epochs(first), 'epoch')}, batches of {study.budget.batch}"
    return (
        Term(name="data and split", equal=True, value=f"{study.data}, the same split for all arms and seeds"),
        _term("task options", options, arms),
        _term("budget", budget, arms),
        _term("tuning", grid or "nothing is tuned", arms),
        _term("untuned hyper-parameters", f"{rule.kind}, {rule.schedule.kind} schedule", arms),
        Term(
            name="seeds",
            equal=True,
            value=f"{study.seeds} per arm and setting, paired: a seed fixes the data order and the random streams",
        ),
        Term(name="selection", equal=True, value="the setting with the best mean on validation, last epoch"),
        Term(
            name="test set",
            equal=True,
            value="evaluated once per run and way of evaluation, after the last epoch; never used to choose",
        ),
        _term("evaluation", arms[0].evaluation, arms),
        *(_term(kind, "", arms) for kind in _other_kinds(arms)),
        Term(name="parameters", equal=len(parameters) == 1, value=_list(parameters)),
        Term(
            name="multiply-adds per example",
            equal=len(flops) == 1,
            value=_list({None if count is None else count // 2 for count in flops}),
        ),
    )


def _term(name: str, first: str, arms: Sequence[PlannedArm]) -> Term:
    """A term: its value for the first arm, and where other arms differ from it."""
    parts = [first] if first else []
    for arm in arms:
        own = [each.text for each in arm.differences or () if each.kind in KINDS.get(name, (name,))]
        parts += [f"{arm.name}: {', '.join(own)}"] if own else []
    return Term(name=name, equal=len(parts) <= bool(first), value="; ".join(parts))


def _other_kinds(arms: Sequence[PlannedArm]) -> list[str]:
    known = {kind for kinds in KINDS.values() for kind in kinds} | set(OF_THE_DESIGN)
    found = dict.fromkeys(each.kind for arm in arms for each in arm.differences or ())
    return [kind for kind in found if kind not in known]


def _list(values: set[int] | set[int | None]) -> str:
    return listed(["unknown" if value is None else f"{value:,}" for value in sorted(values, key=lambda v: v or 0)])

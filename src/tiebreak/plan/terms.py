"""Equal terms: what is equal for all arms of a study and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tiebreak.plan.resolve import task_options
from tiebreak.plan.runs import PlannedArm, Term
from tiebreak.study.base import Grid
from tiebreak.study.registry import OWN_TASK
from tiebreak.study.schema import Study
from tiebreak.text import listed, number_of

KINDS = {  # of differences between arms, by the term that they belong to; any other kind is a term of its own
    "task options": ("options", "protocol"),
    "budget": ("budget",),
    "tuning": ("grid",),
    "augmentation": ("augment",),
    "initialisation": ("init",),
    "precision": ("precision",),
    "untuned hyper-parameters": ("optimiser", "schedule", "hypers"),
    "evaluation": ("evaluation",),
}
OF_THE_DESIGN = ("design", "build")  # what is compared


def equal_terms(study: Study, arms: list[PlannedArm], examples: int) -> tuple[Term, ...]:
    """What is equal for all arms, and what is not: for each arm, in what it differs from the first.

    `examples` are those of the training split.
    """
    parameters = {arm.parameters for arm in arms}
    flops = {arm.flops for arm in arms}
    first, rule = study.arms[0], study.optimiser_of(study.arms[0])
    options = ", ".join(f"{key}={value}" for key, value in task_options(study, first).items())
    if study.task == OWN_TASK:
        options = "the loss and the metrics of your own task"
    return (
        Term(name="data and split", equal=True, value=f"{study.data}, the same split for all arms and seeds"),
        _term("task options", options, arms),
        _budget(study, arms, examples),
        _tuning(study),
        *_augmentation(study),
        *_initialisation(study),
        *_precision(study),
        _term("untuned hyper-parameters", f"{rule.kind}, {rule.schedule.kind} schedule{_fixed(study)}", arms),
        Term(
            name="seeds",
            equal=True,
            value=f"{study.seeds} per arm and setting, paired: a seed fixes the data order and the random streams",
        ),
        Term(
            name="selection", equal=True, value=f"the setting with the best mean on validation, {_epoch(study)} epoch"
        ),
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


def _fixed(study: Study) -> str:
    """The hyper-parameters that the study or its first arm sets to one value."""
    first = study.arms[0]
    values = {**study.fixed, **first.fixed}
    return "".join(f", {name}={value:g}" for name, value in values.items() if name not in study.grid_of(first))


def _epoch(study: Study) -> str:
    return "last" if study.budget.patience is None else "best"


def _budget(study: Study, arms: Sequence[PlannedArm], examples: int) -> Term:
    """Epochs and batch sizes; where batch sizes differ, how many steps that makes; early stopping."""
    first = study.arms[0]
    term = _term("budget", f"{number_of(study.epochs(first), 'epoch')}, batches of {study.batch(first)}", arms)
    value = term.value
    if len({study.batch(arm) for arm in study.arms}) > 1:
        steps = {study.epochs(arm) * -(-examples // study.batch(arm)) for arm in study.arms}
        value += f"; equal {study.budget.equal}: {_list(steps)} steps"
    if study.budget.patience is not None:
        value += (
            f"; at most: a run stops after {number_of(study.budget.patience, 'epoch')} without a better {study.metric} "
            "on validation, and its best epoch is evaluated"
        )
    return term.model_copy(update={"value": value})


def _augmentation(study: Study) -> Iterator[Term]:
    """Listed where an arm has one."""
    texts = [found.text() if (found := study.augment_of(arm)) is not None else "none" for arm in study.arms]
    if set(texts) != {"none"}:
        value = texts[0] if len(set(texts)) == 1 else _by_arm(study, texts)
        yield Term(name="augmentation", equal=len(set(texts)) == 1, value=value)


def _initialisation(study: Study) -> Iterator[Term]:
    """Listed where a study sets one."""
    texts = [study.init_of(arm) or "the design's own" for arm in study.arms]
    if set(texts) != {"the design's own"}:
        value = texts[0] if len(set(texts)) == 1 else _by_arm(study, texts)
        yield Term(name="initialisation", equal=len(set(texts)) == 1, value=value)


def _precision(study: Study) -> Iterator[Term]:
    """Listed where it is not float32 for all."""
    texts = [study.precision_of(arm) or "float32" for arm in study.arms]
    if set(texts) != {"float32"}:
        value = texts[0] if len(set(texts)) == 1 else _by_arm(study, texts)
        yield Term(name="precision", equal=len(set(texts)) == 1, value=value)


def _by_arm(study: Study, texts: Sequence[str]) -> str:
    return "; ".join(f"{arm.name}: {text}" for arm, text in zip(study.arms, texts, strict=True))


def _tuning(study: Study) -> Term:
    """The grid; of arms with grids of their own, each, since only the number of settings is equal."""
    if all(study.grid_of(arm) == study.grid_of(study.arms[0]) for arm in study.arms):
        return Term(name="tuning", equal=True, value=_grid_text(study.grid_of(study.arms[0])))
    counts = {len(study.settings(arm)) for arm in study.arms}
    grids = " | ".join(f"{arm.name}: {_grid_text(study.grid_of(arm))}" for arm in study.arms)
    number = f"{listed([str(count) for count in sorted(counts)])} setting{'s' * (counts != {1})}"
    return Term(
        name="tuning", equal=len(counts) == 1, value=f"{number} {'per arm' if len(counts) == 1 else 'by arm'}: {grids}"
    )


def _grid_text(grid: Grid) -> str:
    each = (f"{name} in {', '.join(f'{value:g}' for value in values)}" for name, values in grid.items())
    return "; ".join(each) or "nothing is tuned"


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

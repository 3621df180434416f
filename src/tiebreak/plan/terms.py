"""Equal terms: what is equal for all arms of a study and what is not, and warnings before training."""

from __future__ import annotations

from tiebreak.plan.resolve import comparison_count, hypers, task_options
from tiebreak.plan.runs import RAN_CODE, PlannedArm, Term
from tiebreak.study.registry import Scalar
from tiebreak.study.schema import Study
from tiebreak.text import listed, number_of


def equal_terms(study: Study, arms: list[PlannedArm]) -> tuple[Term, ...]:
    """What is equal for all arms, and what is not."""
    options = [task_options(study, arm) for arm in study.arms]
    epochs = {study.epochs(arm) for arm in study.arms}
    parameters = {arm.parameters for arm in arms}
    flops = {arm.flops for arm in arms}
    fixed = [hypers(study, arm, {}) for arm in study.arms]
    rules = [study.optimiser_of(arm) for arm in study.arms]
    evaluations = sorted({arm.evaluation for arm in arms})
    grid = "; ".join(f"{name} in {', '.join(f'{value:g}' for value in values)}" for name, values in study.grid.items())
    return (
        Term(name="data and split", equal=True, value=f"{study.data}, the same split for all arms and seeds"),
        Term(name="task options", equal=options.count(options[0]) == len(options), value=_option_list(options)),
        Term(
            name="budget",
            equal=len(epochs) == 1,
            value=f"{_list(epochs)} epoch{'s' * (epochs != {1})}, batches of {study.budget.batch}",
        ),
        Term(name="tuning", equal=True, value=grid or "nothing is tuned"),
        Term(
            name="untuned hyper-parameters",
            equal=fixed.count(fixed[0]) == len(fixed) and rules.count(rules[0]) == len(rules),
            value="; ".join(dict.fromkeys(f"{rule.kind}, {rule.schedule.kind} schedule" for rule in rules)),
        ),
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
        Term(name="evaluation", equal=len(evaluations) == 1, value=listed(evaluations)),
        Term(name="parameters", equal=len(parameters) == 1, value=_list(parameters)),
        Term(
            name="multiply-adds per example",
            equal=len(flops) == 1,
            value=_list({None if count is None else count // 2 for count in flops}),
        ),
    )


def _option_list(options: list[dict[str, Scalar]]) -> str:
    common = [f"{key}={value}" for key, value in options[0].items() if all(other[key] == value for other in options)]
    differing = [key for key in options[0] if any(other[key] != options[0][key] for other in options)]
    return ", ".join([*common, *(f"{key} differs by arm" for key in differing)])


def _list(values: set[int] | set[int | None]) -> str:
    return listed(["unknown" if value is None else f"{value:,}" for value in sorted(values, key=lambda v: v or 0)])


def warnings(study: Study, official: bool | None, synthetic: bool) -> list[str]:
    """What to know before training."""
    from tiebreak.verdict.statistics import least_seeds

    found = []
    if study.designs_from is not None:
        found.append(f"{study.designs_from} {RAN_CODE}")
    count = comparison_count(study)
    if study.seeds < least_seeds(count):
        found.append(
            f"{number_of(study.seeds, 'seed')} cannot decide {number_of(count, 'comparison')}: "
            f"at least {least_seeds(count)} are needed (--seeds)"
        )
    if official is False:
        found.append(
            f"the file of {study.data} is not the published one: its checksum differs; results hold for your copy"
        )
    if synthetic:
        found.append(f"{study.data} is synthetic speech, easier than human speech: results may not carry over to it")
    return found

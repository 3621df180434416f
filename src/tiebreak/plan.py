"""From a study to a plan: every run, its identity, what it costs, and whether the arms compete on equal terms.

Only `make_plan` and `predict` import torch, and only when called: a stored plan is reused while study, code and data
are unchanged, so that asking again about a finished study is quick.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiebreak import names
from tiebreak.data import fetch
from tiebreak.data.embedded import mnist5k_file
from tiebreak.errors import TiebreakError
from tiebreak.names import Option, Scalar
from tiebreak.runs import PLAN_FILE, DataSummary, Plan, PlannedArm, Run, Term, digest, evaluation_key, run_key
from tiebreak.study import Arm, Study

COMPARABILITY = 1  # raised when training itself changes, so that old and new runs are never mixed
UPDATE_SHARE = 1.2  # predictions: a step's update and bookkeeping on top of its forward and backward pass
PROCESS_BYTES = 350e6  # predictions: a process that has imported torch


def find_plan(study: Study, folder: Path, data_dir: Path | None) -> Plan:
    """The folder's plan if it still belongs to this study, code and data; a new one otherwise."""
    inputs = plan_inputs(study, data_dir)
    if (folder / PLAN_FILE).is_file():
        try:
            stored = Plan.read(folder)
        except TiebreakError:
            return make_plan(study, data_dir)  # an old or damaged plan is replaced: it can be made again at any time
        if stored.inputs == inputs:
            return stored
    return make_plan(study, data_dir)


def plan_inputs(study: Study, data_dir: Path | None) -> str:
    """A digest of all that a plan is made of: the study, our code, the data."""
    return digest([study.model_dump(mode="json"), _code_digest(), data_checksum(study.data, data_dir)])


@cache
def _code_digest() -> str:
    hasher = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def data_checksum(name: str, data_dir: Path | None) -> str:
    """The checksum of a data set's file, found without loading it."""
    if names.DATA[name].embedded:
        return fetch.file_checksum(mnist5k_file())
    return " ".join(file.sha256 for file in fetch.verify(name, data_dir).values())


def make_plan(study: Study, data_dir: Path | None) -> Plan:
    """Every run that the study needs. Builds each design once, to count; trains nothing."""
    from tiebreak import catalog

    task = catalog.TASKS[study.task]
    data = task.load(study.data, data_dir)
    runs: dict[str, Run] = {}
    arms = []
    for arm in study.arms:
        planned, own = _plan_arm(study, arm, data.checksum, task.shape(data))
        arms.append(planned)
        for identity, run in own.items():
            shared = runs.get(identity, run)
            evaluations = tuple(
                {evaluation_key(item): item for item in (*shared.evaluations, *run.evaluations)}.values()
            )
            runs[identity] = shared.model_copy(update={"evaluations": evaluations})
    return Plan(
        study=study.name,
        inputs=plan_inputs(study, data_dir),
        data=DataSummary(
            name=data.name,
            checksum=data.checksum,
            official=data.official,
            sizes=task.sizes(data, task_options(study, study.arms[0])),
            licence=data.licence,
            citation=data.citation,
        ),
        arms=tuple(arms),
        runs=runs,
        terms=equal_terms(study, arms),
        warnings=tuple(warnings(study, data.official)),
    )


def _plan_arm(study: Study, arm: Arm, checksum: str, shape: object) -> tuple[PlannedArm, dict[str, Run]]:
    from tiebreak import catalog
    from tiebreak.cost import measure

    design = catalog.DESIGNS[arm.design]
    build = complete(names.DESIGNS[arm.design].options, arm.build)
    evaluation = {
        key: value for key, value in arm.evaluation.items() if value != names.TASKS[study.task].evaluation[key].default
    }
    runs: dict[str, Run] = {}
    keys: dict[str, str] = {}
    for setting in study.settings():
        for seed in range(study.seeds):
            run = Run(
                design=arm.design,
                source=design.source(),
                build=build,
                task=study.task,
                options=task_options(study, arm),
                data=study.data,
                checksum=checksum,
                optimiser=study.optimiser,
                hypers=hypers(study, arm, setting),
                setting=setting,
                seed=seed,
                epochs=study.epochs(arm),
                batch=study.budget.batch,
                comparability=COMPARABILITY,
                evaluations=(evaluation,),
            )
            runs[run.identity] = run
            keys[run_key(setting, seed)] = run.identity
    network = design.network(shape, build, 0)  # type: ignore[arg-type]
    planned = PlannedArm(
        name=arm.name,
        design=arm.design,
        evaluation=evaluation_key(evaluation),
        runs=keys,
        parameters=measure.parameters(network),
        flops=measure.forward_flops(network, shape),  # type: ignore[arg-type]
    )
    return planned, runs


def complete(known: Mapping[str, Option], given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Every option, the given ones over the defaults."""
    return {name: given.get(name, option.default) for name, option in known.items()}


def task_options(study: Study, arm: Arm) -> dict[str, Scalar]:
    """The arm's task options: defaults, then the protocol's, then the study's, then the arm's own."""
    task = names.TASKS[study.task]
    protocol = task.protocols[arm.protocol or study.protocol].options
    return complete(task.options, {**protocol, **study.options, **arm.options})


def hypers(study: Study, arm: Arm, setting: Mapping[str, float]) -> dict[str, float | None]:
    """Every hyper-parameter of a run: defaults, then the study's, the arm's, the setting's."""
    defaults = {name: hyper.default for name, hyper in names.HYPERS.items()}
    return {**defaults, **study.fixed, **arm.fixed, **setting}


def comparison_count(study: Study) -> int:
    """How many comparisons Holm's correction counts: a best-setting question counts once per other setting."""
    return sum(len(study.settings()) - 1 if item.kind == "setting" else 1 for item in study.comparisons)


def equal_terms(study: Study, arms: list[PlannedArm]) -> tuple[Term, ...]:
    """What is held equal between the arms, and what is not."""
    options = [task_options(study, arm) for arm in study.arms]
    epochs = {study.epochs(arm) for arm in study.arms}
    parameters = {arm.parameters for arm in arms}
    flops = {arm.flops for arm in arms}
    fixed = [hypers(study, arm, {}) for arm in study.arms]
    evaluations = sorted({arm.evaluation for arm in arms})
    grid = "; ".join(f"{name} in {', '.join(f'{value:g}' for value in values)}" for name, values in study.grid.items())
    return (
        Term(name="data and split", equal=True, value=f"{study.data}, one split for all arms and seeds"),
        Term(name="task options", equal=options.count(options[0]) == len(options), value=_shown(options)),
        Term(name="budget", equal=len(epochs) == 1, value=f"{_list(epochs)} epochs, batches of {study.budget.batch}"),
        Term(name="tuning", equal=True, value=grid or "nothing is tuned"),
        Term(
            name="untuned hyper-parameters",
            equal=fixed.count(fixed[0]) == len(fixed),
            value=f"{study.optimiser.kind}, {study.optimiser.schedule.kind} schedule",
        ),
        Term(
            name="seeds",
            equal=True,
            value=f"{study.seeds} per arm and setting, paired: one data order and one set of random streams per seed",
        ),
        Term(name="selection", equal=True, value="the setting with the best mean on validation, last epoch"),
        Term(name="test set", equal=True, value="evaluated once per run after its last epoch, never used to choose"),
        Term(name="evaluation", equal=len(evaluations) == 1, value=", ".join(evaluations)),
        Term(name="parameters", equal=len(parameters) == 1, value=_list(parameters)),
        Term(
            name="multiply-adds per example",
            equal=len(flops) == 1,
            value=_list({None if count is None else count // 2 for count in flops}),
        ),
    )


def _shown(options: list[dict[str, Scalar]]) -> str:
    common = [f"{key}={value}" for key, value in options[0].items() if all(other[key] == value for other in options)]
    differing = [key for key in options[0] if any(other[key] != options[0][key] for other in options)]
    return ", ".join([*common, *(f"{key} differs by arm" for key in differing)])


def _list(values: set[int] | set[int | None]) -> str:
    return ", ".join("unknown" if value is None else f"{value:,}" for value in sorted(values, key=lambda v: v or 0))


def warnings(study: Study, official: bool | None) -> list[str]:
    """What the user should know before training."""
    from tiebreak.stats import least_seeds

    found = []
    count = comparison_count(study)
    if study.seeds < least_seeds(count):
        found.append(
            f"{study.seeds} seed{'s' if study.seeds > 1 else ''} cannot decide {count} "
            f"comparison{'s' if count > 1 else ''}: at least {least_seeds(count)} are needed (--seeds)"
        )
    if official is False:
        found.append(
            f"the file of {study.data} is not the published one: its checksum differs; results hold for your copy"
        )
    return found


@dataclass(frozen=True)
class Prediction:
    """What training would take: seconds by arm (a shared run counts for the first), and bytes of memory."""

    seconds: dict[str, float]
    memory: float


def predict(plan: Plan, data_dir: Path | None, workers: int) -> Prediction:
    """From a few timed steps of every design on zeros. Rough: a factor of two is normal."""
    import torch

    from tiebreak import catalog
    from tiebreak.cost import measure

    torch.set_num_threads(1)
    first = next(iter(plan.runs.values()))
    task = catalog.TASKS[first.task]
    shape = task.shape(task.load(first.data, data_dir))
    steps = -(-plan.data.sizes["train"] // first.batch)
    seconds: dict[str, float] = {}
    counted: set[str] = set()
    for arm in plan.arms:
        build = plan.runs[next(iter(arm.runs.values()))].build
        step = measure.step_seconds(catalog.DESIGNS[arm.design].network(shape, build, 0), shape, first.batch)
        own = set(arm.runs.values()) - counted
        counted |= own
        epochs = sum(plan.runs[identity].epochs for identity in own)
        seconds[arm.name] = UPDATE_SHARE * step * steps * epochs / workers
    tensors = 4 * shape.example(1).numel() * sum(plan.data.sizes.values())
    return Prediction(seconds, workers * (PROCESS_BYTES + 2 * tensors))

"""From a study to a plan: every run with its identity, the size of every network, the equal terms, the warnings.

Only `make_plan` imports torch, and only when called: a stored plan is reused while study, code and data are unchanged,
so that a finished study answers quickly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

from tiebreak import files
from tiebreak.data import families
from tiebreak.errors import TiebreakError, explain_design_errors
from tiebreak.plan.advice import NetworkFacts, PlannedData, warnings
from tiebreak.plan.code_identity import Sources
from tiebreak.plan.differences import arm_differences
from tiebreak.plan.own_task_checks import Trial, load_own
from tiebreak.plan.program_plan import make_program_plan, program_inputs
from tiebreak.plan.resolve import complete, hypers, task_options
from tiebreak.plan.runs import (
    PLAN_FILE,
    DataSummary,
    Monitor,
    Plan,
    PlannedArm,
    Run,
    digest,
    evaluation_key,
    run_key,
)
from tiebreak.plan.terms import equal_terms
from tiebreak.study import registry
from tiebreak.study.design_file import DESIGNS_FILE, LIMIT_BYTES
from tiebreak.study.own_task_keys import FUNCTIONS
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.registry import OWN_TASK, Scalar
from tiebreak.study.schema import Arm, Study

COMPARABILITY = 2  # raised when training itself changes, so that old and new runs are never mixed


def find_plan(study: Study, folder: Path | None, data_dir: Path | None) -> Plan:
    """The folder's plan if it still belongs to this study, code and data; a new one otherwise (or without a folder)."""
    inputs = plan_inputs(study, data_dir)
    if folder is not None and (folder / PLAN_FILE).is_file():
        try:
            stored = Plan.read(folder)
        except TiebreakError:
            return make_plan(study, data_dir)  # an old or damaged plan is replaced: it can be made again at any time
        if stored.inputs == inputs:
            return stored.model_copy(update={"designs_from": study.designs_from})  # the folder may have been moved
    return make_plan(study, data_dir)


def plan_inputs(study: Study, data_dir: Path | None) -> str:
    """A digest of all that a plan is made of: the study, our code, the data."""
    texts = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in design_modules(study).items()}
    content = study.model_dump(mode="json", exclude={"designs_from"})  # their text counts, not where it lies
    own = program_inputs(study) if study.task == PROGRAM else []
    return digest([content, _code_digest(), texts, own, data_checksum(study, data_dir)])


def design_modules(study: Study) -> dict[str, str]:
    """The texts of a user's design file and of the modules beside it that it uses, as a results folder names them."""
    if study.designs_from is None:
        return {}
    path = Path(study.designs_from)
    found = {DESIGNS_FILE: files.read_text(path, LIMIT_BYTES)}
    for each in Sources().helper_files(path):
        name = each.relative_to(path.parent).as_posix()
        if name == DESIGNS_FILE:
            raise TiebreakError(f"{each}: a results folder calls the design file itself {name}; rename this module")
        found[name] = files.read_text(each, LIMIT_BYTES)
    return found


def data_checksum(study: Study, data_dir: Path | None) -> str:
    """The checksum of the study's data, found without loading it."""
    if study.task == PROGRAM:
        return ""  # the program loads its own data
    if study.task == OWN_TASK:
        return load_own(study, design_modules(study), data_dir).checksum
    return families.checksum(study.entry.family, study.data, data_dir)


@cache
def _code_digest() -> str:
    hasher = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def make_plan(study: Study, data_dir: Path | None) -> Plan:
    """Every run that the study needs. Builds each network once to count parameters and operations; trains nothing."""
    if study.task == PROGRAM:
        return make_program_plan(study, plan_inputs(study, data_dir))
    from tiebreak import catalog
    from tiebreak.tasks.own_task import OwnTask

    first = task_options(study, study.arms[0])
    task = catalog.find_task(study.task, study.designs_from).with_options(first)
    users = task if isinstance(task, OwnTask) else None
    data = load_own(study, design_modules(study), data_dir) if users else task.load(study.data, data_dir)
    synthetic = bool(getattr(data, "synthetic", False))  # only speech has it
    front_end = getattr(task, "front_end", None)  # and this
    sizes, unit = task.sizes(data, first), study.entry.unit
    runs: dict[str, Run] = {}
    arms, networks, sources = [], {}, Sources()
    known: dict[str, NetworkFacts] = {}
    trial = Trial(study, users, data) if users else None
    for arm in study.arms:
        shape = task.with_options(task_options(study, arm)).shape(data)
        source, code = _run_source(study, arm, sources)
        facts = networks[arm.name] = _known_facts(study, arm, shape, known, trial)
        _check_augment(study, arm, shape)
        batch = min(study.batch(arm), max(1, sizes["train"]))  # a larger one would only be padded
        _check_padding(arm, facts, batch, sizes["train"])
        model = {"source": source, "checksum": data.checksum, "batch": batch}
        planned, own = _plan_arm(study, arm, model, facts)
        arms.append(planned.model_copy(update={"code": code, "shape": asdict(shape)}))
        for identity, run in own.items():
            shared = runs.get(identity, run)
            evaluations = tuple(
                {evaluation_key(item): item for item in (*shared.evaluations, *run.evaluations)}.values()
            )
            runs[identity] = shared.model_copy(update={"evaluations": evaluations})
    apart = arm_differences(study, arms, runs)
    arms = [arm.model_copy(update={"differences": apart[arm.name]}) for arm in arms]
    return Plan(
        study=study.name,
        inputs=plan_inputs(study, data_dir),
        data=DataSummary(
            name=data.name,
            checksum=data.checksum,
            official=data.official,
            sizes=sizes,
            licence=data.licence,
            citation=data.citation,
            vocabulary=task.vocabulary(data),
            synthetic=synthetic,
            front_end=front_end(data) if front_end else None,
            held=dict(data.sizes) if unit else {},
            unit=unit or "examples",
        ),
        designs_from=study.designs_from,
        arms=tuple(arms),
        runs=runs,
        terms=equal_terms(study, arms, sizes["train"]),
        warnings=tuple(
            warnings(
                study,
                PlannedData(
                    sizes=sizes,
                    official=data.official,
                    synthetic=synthetic,
                    signed=bool(getattr(data, "signed", False)),  # only a graph has it
                ),
                arms,
                networks,
            )
        ),
    )


def _check_padding(arm: Arm, facts: NetworkFacts, batch: int, train: int) -> None:
    """Refuse batch normalisation that cannot tell the rows that fill up the last batch."""
    if facts.flattens_rows and train % batch:
        raise TiebreakError(
            f"design {arm.design!r}: its batch normalisation gets rows that are not the examples in their order, and"
            f" the last batch of an epoch ({train % batch} of {batch}) is padded with rows that it cannot tell from"
            f" others; use a batch that divides {train:,}, or keep the examples on the first axis, in their order"
        )


def _build_options(arm: Arm) -> dict[str, Scalar]:
    """The options of the arm's network; those of a user's design are known to its code only."""
    own = arm.design not in registry.DESIGNS
    return dict(arm.build) if own else complete(registry.DESIGNS[arm.design].options, arm.build)


def _known_facts(
    study: Study, arm: Arm, shape: Any, known: dict[str, NetworkFacts], trial: Trial | None
) -> NetworkFacts:
    """The facts of the arm's network; `known` holds those of networks seen before. An own task is tried with it."""
    build = _build_options(arm)
    key = repr((arm.design, build, shape))
    if key not in known:
        known[key] = _network_facts(study, arm, build, shape, trial)
    return known[key]


def _network_facts(
    study: Study, arm: Arm, build: Mapping[str, Scalar], shape: Any, trial: Trial | None
) -> NetworkFacts:
    from tiebreak import catalog
    from tiebreak.cost import measure
    from tiebreak.models.fusibility import fusion_limits
    from tiebreak.models.global_settings import one_thread
    from tiebreak.models.input_sensitivity import (
        dropout_layers,
        flattens_rows,
        ignores_input,
        ignores_parameters,
        mixes_rows,
    )

    own = arm.design not in registry.DESIGNS
    design = catalog.find_design(arm.design, study.designs_from, study.entry.family)
    with explain_design_errors(arm.design, study.designs_from if own else None), one_thread():
        network = design.network(shape, build, 0)
        # First, since it copies the network: one that keeps what it computed for a gradient cannot be copied.
        mixes = {training: own and mixes_rows(network, shape, training=training) for training in (False, True)}
        flattens = own and not mixes[True] and flattens_rows(network, shape)
        if own and ignores_parameters(network, shape):
            raise TiebreakError(
                f"design {arm.design!r}: its output depends on none of its parameters, so that there is nothing to"
                " train; check its forward method"
            )
        if mixes[False]:
            raise TiebreakError(
                f"design {arm.design!r}: its output for an example depends on the others of the batch in evaluation"
                " mode too, so that a result would depend on what is evaluated together; use stored statistics, as"
                " nn.BatchNorm does with track_running_stats=True; attention of torch takes examples first with"
                " batch_first=True"
            )
        if trial is not None:
            trial.try_out(network)
        obstacle, run_by_run = fusion_limits(
            partial(design.network, shape, build, 0), shape, trial.called() if trial else None
        )
        return NetworkFacts(
            parameters=measure.parameters(network),
            flops=measure.forward_flops(network, shape),
            cannot_fuse=obstacle,
            run_by_run=run_by_run,
            dropout_layers=dropout_layers(network),
            uses_input=not (own and ignores_input(network, shape)),
            mixes_rows=mixes[True],
            flattens_rows=flattens,
        )


def _run_source(study: Study, arm: Arm, sources: Sources) -> tuple[str, dict[str, str]]:
    """The hash of the code that decides the numbers of the arm's runs, and those of its parts."""
    from tiebreak import catalog
    from tiebreak.tasks.own_task import OwnTask

    design = catalog.find_design(arm.design, study.designs_from, study.entry.family)
    own = arm.design not in registry.DESIGNS
    user_file = study.designs_from if own else None
    defined = sources.user_design(Path(user_file), arm.design) if user_file else sources.definition(design.build)
    task = [sources.definition(type(catalog.TASKS[study.task]) if study.task != OWN_TASK else OwnTask)]
    if study.task == OWN_TASK:
        task.insert(0, sources.user_functions(Path(study.designs_from or ""), FUNCTIONS))
    return sources.run_source(defined, *task), sources.run_parts(defined, *task)


def _check_augment(study: Study, arm: Arm, shape: Any) -> None:
    """Refuse an augmentation that leaves nothing of an image."""
    augment = study.augment_of(arm)
    side = min(shape.height, shape.width) if augment is not None else 0
    for name in ("shift", "cutout") if augment is not None else ():
        if (value := getattr(augment, name)) >= side:
            raise TiebreakError(
                f"arm {arm.name!r}: augment.{name} = {value} covers whole images of {shape.height} x {shape.width} "
                f"pixels; use less than {side}"
            )


def _monitor(study: Study, arm: Arm) -> Monitor | None:
    """What the arm's runs watch: the study's metric on validation, if anything depends on it."""
    patience = study.budget.patience
    if patience is None and study.optimiser_of(arm).schedule.kind != "plateau":
        return None
    return Monitor(metric=study.metric, goal=study.goal(), patience=patience)


def _plan_arm(
    study: Study, arm: Arm, model: Mapping[str, Any], facts: NetworkFacts
) -> tuple[PlannedArm, dict[str, Run]]:
    """The arm and its runs. `model` holds what does not follow from the study: code, data, the batch that fits it."""
    build = _build_options(arm)
    evaluation = {key: value for key, value in arm.evaluation.items() if value != study.entry.evaluation[key].default}
    options = task_options(study, arm)
    monitor = _monitor(study, arm)
    runs: dict[str, Run] = {}
    keys: dict[str, str] = {}
    for setting in study.settings(arm):
        for seed in range(study.seeds):
            run = Run(
                design=arm.design,
                build=build,
                task=study.task,
                options=options,
                data=study.data,
                optimiser=study.optimiser_of(arm),
                hypers=hypers(study, arm, setting),
                setting=setting,
                seed=seed,
                epochs=study.epochs(arm),
                comparability=COMPARABILITY,
                evaluations=(evaluation,),
                monitor=monitor,
                augment=study.augment_of(arm),
                init=study.init_of(arm),
                precision=study.precision_of(arm),
                **model,
            )
            runs[run.identity] = run
            keys[run_key(setting, seed)] = run.identity
    planned = PlannedArm(
        name=arm.name,
        design=arm.design,
        evaluation=evaluation_key(evaluation),
        runs=keys,
        parameters=facts.parameters,
        flops=facts.flops,
        cannot_fuse=facts.cannot_fuse,
        run_by_run=facts.run_by_run,
    )
    return planned, runs

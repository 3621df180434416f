"""From a study to a plan: every run with its identity, the size of every network, the equal terms, the warnings.

Only `make_plan` imports torch, and only when called: a stored plan is reused while study, code and data are unchanged,
so that a finished study answers quickly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiebreak.data import families
from tiebreak.errors import TiebreakError, explain_design_errors
from tiebreak.plan.code_identity import Sources
from tiebreak.plan.resolve import complete, hypers, task_options
from tiebreak.plan.runs import (
    PLAN_FILE,
    DataSummary,
    Plan,
    PlannedArm,
    Run,
    digest,
    evaluation_key,
    run_key,
)
from tiebreak.plan.terms import equal_terms, warnings
from tiebreak.study import registry
from tiebreak.study.design_file import file_hash
from tiebreak.study.registry import Scalar
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
        if stored.inputs == inputs and stored.designs_from == study.designs_from:
            return stored
    return make_plan(study, data_dir)


def plan_inputs(study: Study, data_dir: Path | None) -> str:
    """A digest of all that a plan is made of: the study, our code, the data."""
    own: list[str] = []
    if study.designs_from is not None:
        path = Path(study.designs_from)
        own = [file_hash(each) for each in (path, *Sources().helper_files(path))]
    return digest([study.model_dump(mode="json"), _code_digest(), own, data_checksum(study, data_dir)])


def data_checksum(study: Study, data_dir: Path | None) -> str:
    """The checksum of the study's data, found without loading it."""
    return families.checksum(registry.TASKS[study.task].family, study.data, data_dir)


@cache
def _code_digest() -> str:
    hasher = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def make_plan(study: Study, data_dir: Path | None) -> Plan:
    """Every run that the study needs. Builds each network once to count parameters and operations; trains nothing."""
    from tiebreak import catalog

    first = task_options(study, study.arms[0])
    task = catalog.TASKS[study.task].with_options(first)
    data = task.load(study.data, data_dir)
    synthetic = bool(getattr(data, "synthetic", False))  # only speech has it
    front_end = getattr(task, "front_end", None)  # and this
    runs: dict[str, Run] = {}
    arms, ignoring, sources = [], {}, Sources()
    known: dict[str, NetworkFacts] = {}
    for arm in study.arms:
        shape = task.with_options(task_options(study, arm)).shape(data)
        source = _run_source(study, arm, sources)
        planned, own, uses_input = _plan_arm(study, arm, source, data.checksum, shape, known)
        arms.append(planned)
        if not uses_input:
            ignoring[arm.design] = f"{arm.design}: its output does not depend on its input; check its forward method"
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
            sizes=task.sizes(data, first),
            licence=data.licence,
            citation=data.citation,
            vocabulary=task.vocabulary(data),
            synthetic=synthetic,
            front_end=front_end(data) if front_end else None,
        ),
        designs_from=study.designs_from,
        arms=tuple(arms),
        runs=runs,
        terms=equal_terms(study, arms),
        warnings=(*warnings(study, data.official, synthetic), *ignoring.values()),
    )


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """What a plan says of a network: the same for all arms with its design, options and shape."""

    parameters: int
    flops: int | None
    cannot_fuse: str
    uses_input: bool  # checked for a user's design; tests check ours


def _network_facts(study: Study, arm: Arm, build: Mapping[str, Scalar], shape: Any) -> NetworkFacts:
    from tiebreak import catalog
    from tiebreak.cost import measure
    from tiebreak.models.fusibility import fusion_obstacle
    from tiebreak.models.input_sensitivity import ignores_input

    own = arm.design not in registry.DESIGNS
    design = catalog.find_design(arm.design, study.designs_from, registry.TASKS[study.task].family)
    with explain_design_errors(arm.design, study.designs_from if own else None):
        network = design.network(shape, build, 0)
        return NetworkFacts(
            parameters=measure.parameters(network),
            flops=measure.forward_flops(network, shape),
            cannot_fuse=fusion_obstacle(network, shape),
            uses_input=not (own and ignores_input(network, shape)),
        )


def _run_source(study: Study, arm: Arm, sources: Sources) -> str:
    """The hash of the code that decides the numbers of the arm's runs: its design and the task."""
    from tiebreak import catalog

    design = catalog.find_design(arm.design, study.designs_from, registry.TASKS[study.task].family)
    own = arm.design not in registry.DESIGNS
    user_file = study.designs_from if own else None
    defined = sources.user_design(Path(user_file), arm.design) if user_file else sources.definition(design.build)
    return sources.run_source(defined, sources.definition(type(catalog.TASKS[study.task])))


def _plan_arm(
    study: Study, arm: Arm, source: str, checksum: str, shape: Any, known: dict[str, NetworkFacts]
) -> tuple[PlannedArm, dict[str, Run], bool]:
    """The arm, its runs, and whether its network uses its input. `known` holds the facts of networks seen before."""
    own = arm.design not in registry.DESIGNS
    build = dict(arm.build) if own else complete(registry.DESIGNS[arm.design].options, arm.build)
    evaluation = {
        key: value
        for key, value in arm.evaluation.items()
        if value != registry.TASKS[study.task].evaluation[key].default
    }
    key = repr((arm.design, build, shape))
    if key not in known:
        known[key] = _network_facts(study, arm, build, shape)
    facts, options = known[key], task_options(study, arm)
    runs: dict[str, Run] = {}
    keys: dict[str, str] = {}
    for setting in study.settings():
        for seed in range(study.seeds):
            run = Run(
                design=arm.design,
                source=source,
                build=build,
                task=study.task,
                options=options,
                data=study.data,
                checksum=checksum,
                optimiser=study.optimiser_of(arm),
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
    planned = PlannedArm(
        name=arm.name,
        design=arm.design,
        evaluation=evaluation_key(evaluation),
        runs=keys,
        parameters=facts.parameters,
        flops=facts.flops,
        cannot_fuse=facts.cannot_fuse,
        shape=asdict(shape),
    )
    return planned, runs, facts.uses_input

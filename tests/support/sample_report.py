"""A study with plan and records built by hand from seeded numbers, and the verdict on them: no runner, no torch."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Callable, Mapping

import numpy as np

from support.sample_study import sample_study
from tiebreak.plan.differences import arm_differences
from tiebreak.plan.runs import DataSummary, Plan, PlannedArm, Run, Term, evaluation_key, run_key
from tiebreak.report.evidence import Evidence
from tiebreak.results.record import EpochRecord, FinalRecord, Records, RunRecord, Status
from tiebreak.study.registry import TASKS
from tiebreak.study.schema import Arm, Setting, Study
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import ReportedResult

LEVEL = {"cnn-pool": 0.944, "cnn-strided": 0.921, "cnn-pool-unpadded": 0.938}
LR_COST = {0.1: 0.0, 0.01: 0.05, 0.001: 0.32}
PROVENANCE = {
    "tiebreak": "0.1.0",
    "torch": "2.13.0+cpu",
    "python": "3.11.2",
    "device": "cpu, 2 threads",
    "strategy": "fused",
}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_run(study: Study, arm: Arm, setting: Setting, seed: int) -> Run:
    return Run(
        design=arm.design,
        source=_hash(arm.design),
        build=arm.build,
        task=study.task,
        options={**TASKS[study.task].protocols[study.protocol].options, **arm.options},
        data=study.data,
        checksum=_hash(study.data),
        optimiser=study.optimiser,
        hypers={"momentum": 0.0, "dropout": None, **setting},
        setting=dict(setting),
        seed=seed,
        epochs=study.epochs(arm),
        batch=study.budget.batch,
        comparability=1,
        evaluations=tuple(item.evaluation for item in study.arms if item.design == arm.design),
    )


def make_plan(study: Study) -> Plan:
    runs: dict[str, Run] = {}
    arms = []
    for arm in study.arms:
        own = {}
        for setting in study.settings():
            for seed in range(study.seeds):
                run = make_run(study, arm, setting, seed)
                own[run_key(setting, seed)] = run.identity
                runs[run.identity] = run
        arms.append(
            PlannedArm(
                name=arm.name,
                design=arm.design,
                evaluation=evaluation_key(arm.evaluation),
                runs=own,
                parameters=169_292 if arm.design == "cnn-pool-unpadded" else 225_612,
                flops=None if arm.design == "cnn-pool-unpadded" else 1_034_000,
            )
        )
    apart = arm_differences(study, arms, runs)
    return Plan(
        study=study.name,
        inputs=_hash(study.question)[:20],
        data=DataSummary(
            name=study.data,
            checksum=_hash(study.data),
            official=True,
            sizes={"train": 3500, "val": 500, "test": 1000},
            licence="CC BY-SA 3.0",
            citation="LeCun, Cortes and Burges, The MNIST database of handwritten digits",
        ),
        arms=tuple(arm.model_copy(update={"differences": apart[arm.name]}) for arm in arms),
        runs=runs,
        terms=(
            Term(name="data and split", equal=True, value="mnist5k: 3,500 train, 500 validation, 1,000 test"),
            Term(name="budget", equal=True, value="3 epochs, batch 8"),
            Term(name="tuning", equal=True, value="3 settings (lr), the same for every arm"),
            Term(name="seeds", equal=True, value="0 to 9, paired: same data order and streams"),
            Term(name="selection", equal=True, value="validation accuracy after the last epoch"),
            Term(name="test split", equal=True, value="once per run, after its last epoch"),
            Term(name="parameters", equal=False, value="pool 225,612; strided 225,612; unpadded 169,292"),
        ),
    )


def make_records(study: Study, plan: Plan) -> Records:
    random = np.random.default_rng(20)
    shared = random.normal(0, 0.004, study.seeds)  # what a seed does to every arm
    epochs: dict[str, dict[int, EpochRecord]] = {}
    runs: dict[str, RunRecord] = {}
    finals: dict[str, dict[str, FinalRecord]] = {}
    for arm in study.arms:
        for setting in study.settings():
            for seed in range(study.seeds):
                identity = plan.arm(arm.name).run(setting, seed)
                run = plan.runs[identity]
                level = LEVEL[arm.design] - LR_COST[setting["lr"]] * (1 + random.normal(0, 0.1)) + shared[seed]
                epochs.setdefault(run.trajectory, _epochs(run, level, random))
                runs[identity] = RunRecord(
                    identity=identity, trajectory=run.trajectory, status="done", epoch=run.epochs, provenance=PROVENANCE
                )
                accuracy = float(np.clip(level + random.normal(0, 0.004), 0, 1))
                evaluation = plan.arm(arm.name).evaluation
                finals.setdefault(identity, {})[evaluation] = FinalRecord(
                    identity=identity,
                    evaluation=evaluation,
                    metrics={"accuracy": accuracy, "loss": 1.1 - accuracy},
                    outcomes={"accuracy": (np.arange(200) < 200 * accuracy).astype(np.float32)},
                    seconds=0.2,
                )
    return Records(epochs=epochs, runs=runs, finals=finals)


def _epochs(run: Run, level: float, random: np.random.Generator) -> dict[int, EpochRecord]:
    found = {}
    for epoch in range(1, run.epochs + 1):
        value = level - 0.12 * 0.4 ** (epoch - 1) + random.normal(0, 0.004)
        found[epoch] = EpochRecord(
            trajectory=run.trajectory,
            epoch=epoch,
            metrics={"train_loss": 3.2 * (1.03 - value), "val_accuracy": value, "val_loss": 1.1 - value},
            seconds={"train": 1.1 + random.uniform(0, 0.1), "evaluate": 0.05, "checkpoint": 0.01},
        )
    return found


@functools.cache
def complete() -> Evidence:
    """Every run finished."""
    study = sample_study()
    plan = make_plan(study)
    records = make_records(study, plan)
    return Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))


@functools.cache
def long_names() -> Evidence:
    """Every run finished, under names as long as names may be, and a question without a place to break it."""
    long = {"pool": "pool-" + "x" * 55, "strided": "strided-with-a-very-long-name-indeed-and-more-of-it-to-come"}
    text = sample_study().model_dump(mode="json", exclude_none=True)
    for table in (*text["arms"], *text["comparisons"], *text["reported"]):
        for key in {"name", "a", "b", "c", "d", "arm"} & table.keys():
            table[key] = long.get(table[key], table[key])
    study = Study.model_validate({**text, "question": f"Is {'verylongword' * 12} better?"})
    plan = make_plan(study)
    records = make_records(study, plan)
    return Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))


@functools.cache
def empty() -> Evidence:
    """Planned, and nothing trained."""
    return without(complete(), lambda run: True)


@functools.cache
def partial() -> Evidence:
    """A run diverged, one failed, one stopped in the middle, some not started, one not tested."""
    whole = complete()
    study, plan = whole.study, whole.plan
    kept = without(whole, lambda run: run.design == "cnn-strided" and run.seed >= 7)
    records = kept.records
    runs, finals, epochs = dict(records.runs), dict(records.finals), dict(records.epochs)
    endings: tuple[tuple[int, Status, str], ...] = (
        (2, "diverged", "train_loss is nan"),
        (3, "failed", "out of memory <16 GB>"),
    )
    for setting, (seed, status, reason) in itertools.product(study.settings(), endings):
        identity = plan.arm("strided").run(setting, seed)
        runs[identity] = dataclasses.replace(runs[identity], status=status, epoch=2, reason=reason)
        del finals[identity]
    del finals[plan.arm("pool").run({"lr": 0.1}, 5)]
    stopped = plan.arm("unpadded").run({"lr": 0.1}, 4)
    del runs[stopped], finals[stopped]
    trajectory = plan.runs[stopped].trajectory
    epochs[trajectory] = {epoch: record for epoch, record in epochs[trajectory].items() if epoch < 3}
    records = Records(epochs=epochs, runs=runs, finals=finals)
    return Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))


def without(whole: Evidence, dropped: Callable[[Run], bool]) -> Evidence:
    """The same study before some of its runs were trained."""
    keep = {identity: run for identity, run in whole.plan.runs.items() if not dropped(run)}
    trajectories = {run.trajectory for run in keep.values()}
    records = Records(
        epochs={key: value for key, value in whole.records.epochs.items() if key in trajectories},
        runs={key: value for key, value in whole.records.runs.items() if key in keep},
        finals={key: value for key, value in whole.records.finals.items() if key in keep},
    )
    verdict = make_verdict(whole.study, whole.plan, records)
    return dataclasses.replace(whole, records=records, verdict=verdict)


@functools.cache
def with_reported() -> Evidence:
    """Every run finished, and published figures to hold against them."""
    whole = complete()
    rows = []
    for item in whole.study.reported:
        centre = item.value + (0.05 if item.source == "R1" and item.setting["lr"] == 0.1 else 0.003)
        low, high = centre - 0.02, centre + 0.02
        inside = low <= item.value <= high
        rows.append(
            ReportedResult(
                source=item.source,
                what=item.what,
                value=item.value,
                mean=centre,
                low=low,
                high=high,
                inside=inside,
                seeds=10,
            )
        )
    verdict = whole.verdict.model_copy(update={"reported": tuple(rows)})
    return dataclasses.replace(whole, verdict=verdict)


def with_question(question: Mapping[str, object]) -> Evidence:
    """The complete sample with another primary comparison, and a fourth arm that shares the runs of `pool`."""
    text = complete().study.model_dump(mode="json", exclude_none=True)
    arms = [*text["arms"][:3], {"name": "moved", "design": "cnn-pool", "evaluation": {"shift": 2}}]
    changes = {"arms": arms, "comparisons": [question], "claims": [], "reported": []}
    study = Study.model_validate({**text, **changes})
    plan = make_plan(study)
    records = make_records(study, plan)
    return Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))


def attacked(text: str) -> Evidence:
    """Every free text that a study, the data or a run can bring is hostile."""
    whole = partial()
    verdict = whole.verdict.model_copy(
        update={
            "question": text,
            "answer": text,
            "warnings": (text,),
            "claims": tuple(claim.model_copy(update={"text": text, "why": text}) for claim in whole.verdict.claims),
            "comparisons": tuple(
                item.model_copy(update={"name": text, "sentence": text, "a": text, "b": text})
                for item in whole.verdict.comparisons
            ),
            "reported": tuple(
                item.model_copy(update={"source": text, "what": text}) for item in with_reported().verdict.reported[:2]
            ),
        }
    )
    data = whole.plan.data.model_copy(update={"licence": text, "citation": text})
    terms = (whole.plan.terms[0].model_copy(update={"name": text, "value": text}),)
    plan = whole.plan.model_copy(update={"data": data, "terms": terms})
    runs = {
        key: dataclasses.replace(item, reason=text, provenance={text: text}) for key, item in whole.records.runs.items()
    }
    return Evidence(
        study=whole.study, plan=plan, records=dataclasses.replace(whole.records, runs=runs), verdict=verdict
    )

"""Records and plans made by hand: no torch, no training."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tiebreak.plan.runs import DataSummary, Plan, PlannedArm, Run, run_key
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FileRecord,
    FinalRecord,
    RunRecord,
    StepTimes,
)
from tiebreak.study.schema import Setting, Study

EPOCH = EpochRecord(
    trajectory="path",
    epoch=1,
    metrics={"train_loss": 0.25, "val_accuracy": 0.5, "val_loss": float("inf")},
    seconds={"train": 1.5, "evaluate": 0.25, "checkpoint": 0.125},
)
RUN = RunRecord(identity="run", trajectory="path", status="done", epoch=1, provenance={"device": "cpu, größer"})
FINAL = FinalRecord(
    identity="run",
    evaluation="shift=2",
    metrics={"accuracy": 0.5, "loss": 0.1 + 0.2},
    outcomes={"accuracy": np.array([0, 1], np.float32), "loss": np.array([0.1, np.nan], np.float32)},
    seconds=0.5,
)
EXHIBIT = ExhibitRecord(
    identity="run",
    name="examples",
    arrays={"images": np.arange(8, dtype=np.uint8).reshape(2, 2, 2), "class_names": np.array(["größer", "klein"])},
)
CHOICE = Choice(
    cohort="cohort",
    device="cuda",
    strategy="fused",
    threads=1,
    runs=30,
    loop_ms=0.1 + 0.2,
    fused_ms=0.125,
    fits=400,
)
TIMES = StepTimes(
    cohort="cohort", device="cuda", group="both", ms=(1.5, 1.25, 1.5, 1.5, 1.75, 1.5), steps=4, memory_bytes=2000
)
CHECKPOINT = CheckpointRecord(identity="run", trajectory="path", epoch=1, file="run-1.safetensors", sha256="ab" * 32)

FILE = FileRecord(name="plan.json", sha256="ab" * 32)


def study(*, seeds: int = 3, metric: str = "accuracy", epochs: int = 2, **more: Any) -> Study:
    """Two arms and a grid of two learning rates."""
    return Study.model_validate(
        {
            "name": "by-hand",
            "question": "Which?",
            "task": "classify",
            "data": "pneumoniamnist",
            "metric": metric,
            "margin": 0.01,
            "seeds": seeds,
            "budget": {"epochs": epochs, "batch": 8},
            "grid": {"lr": [0.1, 0.01]},
            "arms": [{"name": "pool", "design": "cnn-pool"}, {"name": "strided", "design": "cnn-strided"}],
            "comparisons": [{"a": "pool", "b": "strided"}],
            **more,
        }
    )


def plan(study: Study) -> Plan:
    """The study's runs, as `make_plan` would lay them out."""
    runs: dict[str, Run] = {}
    arms = []
    for arm in study.arms:
        own = {}
        for setting in study.settings():
            for seed in range(study.seeds):
                run = Run(
                    design=arm.design,
                    source="source",
                    build={},
                    task=study.task,
                    options={},
                    data=study.data,
                    checksum="checksum",
                    optimiser=study.optimiser,
                    hypers={"dropout": None, **setting},
                    setting=dict(setting),
                    seed=seed,
                    epochs=study.epochs(arm),
                    batch=study.budget.batch,
                    comparability=1,
                    evaluations=({},),
                )
                runs[run.identity] = run
                own[run_key(setting, seed)] = run.identity
        arms.append(
            PlannedArm(name=arm.name, design=arm.design, evaluation="default", runs=own, parameters=1, flops=None)
        )
    data = DataSummary(name=study.data, checksum="checksum", official=None, sizes={}, licence="", citation="")
    return Plan(study=study.name, inputs="inputs", data=data, arms=tuple(arms), runs=runs, terms=())


@dataclasses.dataclass
class Book:
    """Records of a plan, filled in run by run."""

    plan: Plan
    epochs: dict[str, dict[int, EpochRecord]] = dataclasses.field(default_factory=dict)
    runs: dict[str, RunRecord] = dataclasses.field(default_factory=dict)
    finals: dict[str, dict[str, FinalRecord]] = dataclasses.field(default_factory=dict)

    def done(self, arm: str, setting: Setting, seed: int, *, val: float, test: float, losses: list[float]) -> None:
        """A finished run: the same validation score at every epoch."""
        run = self.plan.runs[self.plan.arm(arm).run(setting, seed)]
        self.runs[run.identity] = RunRecord(
            identity=run.identity, trajectory=run.trajectory, status="done", epoch=run.epochs
        )
        self.epochs[run.trajectory] = {
            epoch: EpochRecord(
                trajectory=run.trajectory,
                epoch=epoch,
                metrics={"train_loss": loss, "val_accuracy": val, "val_loss": 1 - val},
                seconds={"train": float(epoch), "evaluate": 100.0, "checkpoint": 100.0},
            )
            for epoch, loss in enumerate(losses, start=1)
        }
        self.finals[run.identity] = {
            "default": FinalRecord(
                identity=run.identity,
                evaluation="default",
                metrics={"accuracy": test, "loss": 1 - test},
                outcomes={"accuracy": np.full(4, test, np.float32)},
                seconds=1.0,
            )
        }

    def ended(self, arm: str, setting: Setting, seed: int, record: dict[str, Any]) -> None:
        """A run that did not finish."""
        run = self.plan.runs[self.plan.arm(arm).run(setting, seed)]
        self.runs[run.identity] = RunRecord(identity=run.identity, trajectory=run.trajectory, epoch=1, **record)

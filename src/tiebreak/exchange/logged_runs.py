"""The runs of a results folder as a tracker wants them: parameters, a value of each metric per epoch, final scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tiebreak.plan.runs import Plan
from tiebreak.results.record import Records
from tiebreak.study.schema import Study, setting_label

Parameter = str | int | float


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """One run. `epochs`: metrics by epoch; `final`: those of the test split, called test_…

    A program also gives scores on validation data at its end: final_val_…
    """

    name: str
    parameters: Mapping[str, Parameter]
    status: str  # done, diverged, failed
    epochs: Mapping[int, Mapping[str, float]]
    final: Mapping[str, float]
    tags: Mapping[str, str]


def logged_runs(study: Study, plan: Plan, records: Records) -> Iterator[LoggedRun]:
    """Every run that has ended, of every arm and setting. Arms that share runs are logged each with its evaluation."""
    for arm in plan.arms:
        for identity in arm.runs.values():
            record, run = records.runs.get(identity), plan.runs[identity]
            if record is None:
                continue
            setting = setting_label(run.setting) if run.setting else ""
            given: dict[str, Parameter] = {"study": study.name, "arm": arm.name, "seed": run.seed}
            if study.program is None:
                hypers = {key: value for key, value in run.hypers.items() if value is not None}
                given |= {"design": run.design, "data": run.data, "epochs": run.epochs, "batch": run.batch, **hypers}
                given |= run.build
            else:
                given |= {**run.build, **run.options}
            final = records.finals.get(identity, {}).get(arm.evaluation)
            yield LoggedRun(
                name=" ".join(filter(None, [arm.name, setting, f"seed {run.seed}"])),
                parameters=given,
                status=record.status,
                epochs={
                    epoch: {key: value for key, value in found.metrics.items() if math.isfinite(value)}
                    for epoch, found in sorted(records.epochs.get(run.trajectory, {}).items())
                    if epoch <= run.epochs or study.program is not None  # a program's epochs are its own
                },
                final={} if final is None else {
                    f"{'final' if key.startswith('val_') else 'test'}_{key}": value
                    for key, value in final.metrics.items()
                    if math.isfinite(value)
                },
                tags={
                    "tiebreak.identity": identity, "tiebreak.status": record.status,
                    "tiebreak.evaluation": arm.evaluation,
                    **({"tiebreak.reason": record.reason} if record.reason else {}),
                },
            )  # fmt: skip

"""The missing runs as the jobs of a machine or a cluster, and as what the progress display shows of them. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tiebreak.drive.jobs import places_for, split_into_jobs
from tiebreak.drive.machine import LOCAL, Machine
from tiebreak.drive.messages import PendingRun, TrainingStarted
from tiebreak.plan.runs import Plan, Run, cohort_names
from tiebreak.results.record import Choice, Strategy

Cohorts = Mapping[str, Sequence[Run]]  # by key
Strategies = Mapping[str, Strategy]
Cost = Callable[[str, Strategy], float]  # of a step of a run: cohort, strategy -> milliseconds
Share = tuple[str, list[Run]]  # cohort, runs of one job


def divide(
    groups: Cohorts,
    strategies: Strategies,
    choices: Mapping[str, Choice | None],
    machine: Machine,
    slots: int,
    cost: Cost,
) -> list[Share]:
    """The runs of each job. On a cluster, those that take longest come first, so that all places end together."""
    local, total = machine.on == LOCAL, sum(map(len, groups.values()))
    shares: list[Share] = []
    for key, runs in groups.items():
        places = slots if local else places_for(len(runs), total, slots)
        split = split_into_jobs(runs, strategies[key], choices[key], machine.device, places)
        shares += [(key, share) for share in split]

    def seconds(share: Share) -> float:
        return cost(share[0], strategies[share[0]]) * sum(run.epochs / run.batch for run in share[1])

    return shares if local else sorted(shares, key=seconds, reverse=True)


def training_started(
    plan: Plan, groups: Cohorts, strategies: Strategies, cost: Cost, done: Callable[[Run], int], workers: int
) -> TrainingStarted:
    """What is about to be trained; `done` are the epochs that a run has already."""
    names = cohort_names(groups)
    batch = next((run.batch for run in plan.runs.values()), 1)
    runs = {}
    for key, some in groups.items():
        strategy = strategies.get(key, "loop")
        for run in some:
            runs[run.identity] = PendingRun(
                label=run.label,
                cohort=names[key],
                trajectory=run.trajectory,
                epochs=run.epochs,
                done=done(run),
                strategy=strategy,
                cost=cost(key, strategy) * batch / run.batch,
            )
    stored = len(plan.runs) - len(runs)
    return TrainingStarted(runs=runs, steps=-(-plan.data.sizes["train"] // batch), stored=stored, workers=workers)

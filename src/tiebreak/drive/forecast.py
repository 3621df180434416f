"""The time that `tiebreak run` will take, from a few real steps of every cohort: `predicted_steps`.

Loop or fused, jobs and processes are those that the runner would choose. What is not timed (starting processes,
exhibits, the report) is added as constants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tiebreak.drive.jobs import needs_measuring, split_into_jobs, strategy_for
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Job
from tiebreak.drive.predicted_steps import Timing, time_cohort
from tiebreak.drive.timing_budget import timing_seconds
from tiebreak.errors import explain_design_errors
from tiebreak.plan.runs import Plan, Run, cohort_names, cohorts
from tiebreak.results.record import Strategy
from tiebreak.text import listed, number_of

START_SECONDS = 3.0  # of worker processes: each imports torch and reads the data
EXHIBIT_SECONDS = 0.15  # of one run
REPORT_SECONDS = 2.0  # of verdict and report


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Predicted seconds: of each cohort by its key, spread over all processes, and of the whole command."""

    cohorts: Mapping[str, float]
    strategies: Mapping[str, Strategy]
    total: float
    how: str


def forecast(plan: Plan, machine: Machine, tell: Callable[[str], None] = lambda name: None) -> Forecast:
    """Time some steps of every cohort, here and now: another load of the machine later takes another time.

    `tell` gets the name of each cohort before it is timed.
    """
    import torch

    torch.set_num_threads(1)  # as a worker
    groups, processes = cohorts(plan.runs.values()), machine.processes()
    names = cohort_names(groups)
    seconds: dict[str, float] = {}
    strategies: dict[str, Strategy] = {}
    timings: dict[str, Timing] = {}
    jobs: list[float] = []
    measuring = 0.0  # the runner times strategies too, and arms in turns
    for key, runs in groups.items():
        tell(names[key])
        start, fusing = time.perf_counter(), needs_measuring(len(runs), None, machine.strategy, machine.device)
        with explain_design_errors(runs[0].design, plan.designs_from):
            timing = timings[key] = time_cohort(_job(plan, machine, runs), fusing=fusing)
        if fusing:
            measuring += max(timing.run_seconds, time.perf_counter() - start)
        strategies[key] = strategy_for(names[key], timing.choice, machine.strategy)
        shares = split_into_jobs(runs, strategies[key], timing.choice, machine.device, processes)
        own_jobs = [job_seconds(plan.data.sizes, share, strategies[key], timing) for share in shares]
        seconds[key] = sum(own_jobs) / processes
        jobs += own_jobs
    exhibits = EXHIBIT_SECONDS * len({arm.runs[key] for arm in plan.arms for key in list(arm.runs)[:1]})
    training = makespan(jobs, processes)
    if measuring and len(groups) > 1:
        measuring += timing_seconds(len(groups), training)
    total = START_SECONDS + measuring + training + exhibits + REPORT_SECONDS
    fused = sum(strategy == "fused" for strategy in strategies.values())
    how = (
        f"estimated from {_steps(timings.values())} of each of {len(groups)} cohorts on this machine as it is now: "
        f"{fused} fused, {len(groups) - fused} one run after the other, {processes} at a time; with evaluation"
        f"{_shortened({names[key]: timing for key, timing in timings.items()})}"
    )
    return Forecast(cohorts=seconds, strategies=strategies, total=total, how=how)


def _steps(timings: Collection[Timing]) -> str:
    fewest, most = (of(timing.steps for timing in timings) for of in (min, max))
    return f"{fewest} to {most} timed training steps" if fewest < most else number_of(most, "timed training step")


def _shortened(timings: Mapping[str, Timing]) -> str:
    """Which cohorts have steps too slow to be timed as `run` will time them, and what was assumed."""
    short = {name: timing.choice for name, timing in timings.items() if timing.shortened}
    alone = [name for name, choice in short.items() if choice.fused_ms is None and not choice.reason]
    fewer = [f"{name} ({choice.runs} runs at a time)" for name, choice in short.items() if choice.fused_ms is not None]
    told = [f"fused with fewer runs than `tiebreak run` times, since a step is slow: {listed(fewer)}"] if fewer else []
    told += [f"not timed fused, since a step is slow, and taken as not fused: {listed(alone)}"] if alone else []
    return "".join(f". {each[0].upper()}{each[1:]}" for each in told)


def _job(plan: Plan, machine: Machine, runs: Sequence[Run]) -> Job:
    return Job(
        runs=tuple(run.model_dump(mode="json") for run in runs),
        folder=".",  # nothing is written
        data_dir=str(machine.data_dir.resolve()) if machine.data_dir else None,
        device=machine.device,
        precision=machine.precision,
        designs_from=plan.designs_from,
    )


def job_seconds(sizes: Mapping[str, int], runs: Sequence[Run], strategy: Strategy, timing: Timing) -> float:
    """Training, validation after every epoch, and the evaluations on the test split. `sizes` are those of the data."""
    choice = timing.choice
    step = (choice.fused_ms if strategy == "fused" and choice.fused_ms else choice.loop_ms) / 1000
    steps = -(-timing.examples // runs[0].batch)
    cut = timing.examples / max(1, sizes["train"])  # an option of the task may cut the data into other examples
    examples = cut * sum(run.epochs * sizes["val"] + len(run.evaluations) * sizes["test"] for run in runs)
    training = step * steps * sum(run.epochs for run in runs)
    prepared = timing.prepare_seconds if strategy == "fused" else 0.0
    return prepared + training + timing.evaluate_seconds * examples


def makespan(jobs: Sequence[float], processes: int) -> float:
    """When the last process is done, if each takes the next job when it is free."""
    ends = [0.0] * processes
    for seconds in jobs:
        first = ends.index(min(ends))
        ends[first] += seconds
    return max(ends)

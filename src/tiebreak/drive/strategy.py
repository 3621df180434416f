"""Measures which strategy is faster for a cohort on this device: both train the same few steps, in turns."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from tiebreak.cost.formulas import run_bytes
from tiebreak.cost.measure import activation_bytes, number_bytes, parameters
from tiebreak.drive.compile_gain import estimate
from tiebreak.drive.jobs import CPU_COHORT
from tiebreak.drive.kept_engine import keep
from tiebreak.drive.lone_run import choose, time_captured
from tiebreak.drive.memory_fit import MEMORY_SHARE, Probe, runs_that_fit
from tiebreak.drive.messages import Job, Message, StrategyMeasured
from tiebreak.drive.timing_budget import MOST_SECONDS, TIMING_SHARE
from tiebreak.errors import StopStudyError, TiebreakError
from tiebreak.models.fusibility import explain_error
from tiebreak.plan.runs import Run
from tiebreak.results.record import Choice
from tiebreak.system import cores, free_memory
from tiebreak.tasks.interface import Split, count, select
from tiebreak.train.fused.engine import STEPS as REPLAYED
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.run_group import RunGroup, make_group, out_of_memory

STEPS, ROUNDS = 6, 5  # timed steps of a round at most; rounds, of which the median counts
ENOUGH, PATIENCE = 3, 6.0  # rounds that suffice once they have taken this many seconds
GPU_RUNS = 32  # enough to see the gain, few enough to fit


@dataclass(frozen=True)
class Alone:
    """A cohort's first run in a loop, which has warmed up: what the others are timed against."""

    group: RunGroup
    loop: Loop
    train: Split
    step: float  # seconds of a step
    built: float  # seconds until the first step

    @property
    def steps(self) -> int:
        """Training steps of an epoch."""
        return -(-count(self.group.task, self.train) // self.group.runs[0].batch)

    def limit(self, runs: Sequence[Run]) -> float:
        """Seconds that timing may take before these runs are trained."""
        return timing_limit(self.step, sum(run.epochs for run in runs) * self.steps)

    def first(self, steps: int) -> Split:
        """The examples of so many steps."""
        return select(self.group.task, self.train, lambda values: values[: steps * self.group.runs[0].batch])


def train_alone(job: Job, run: Run) -> Alone:
    """A few steps of a run in a loop; fails if the design does."""
    start = time.perf_counter()
    group = make_group(job, [run])
    train = group.split("train", {})
    loop = Loop(group.task, group.network, group.runs[0], group.states[0], group.precision)
    batch = select(group.task, train, lambda values: values[: run.batch])
    time_steps(loop, batch, 1)  # warms up
    step = time_steps(loop, batch, 1)
    return Alone(group, loop, train, step, time.perf_counter() - start)


def timed_together(runs: list[Run], device: str) -> list[Run]:
    """The runs that are timed fused: as many as tell the gain."""
    return runs[: CPU_COHORT // 2 if device == "cpu" else GPU_RUNS]


def measure(job: Job) -> Iterator[Message]:
    """The choice for the job's runs. For a design that cannot be fused it holds the reason."""
    choice, ready = time_strategies(job)
    if ready is not None and choice.strategy == "fused" and choice.compiled is False:
        keep(job, *ready)
    yield StrategyMeasured(choice=choice)


def time_strategies(job: Job, rounds: int = ROUNDS) -> tuple[Choice, tuple[Fused, Split] | None]:
    """Time a few steps of the job's runs with both strategies, in turns.

    On a GPU also returns all runs of the job ready to be trained, with their examples, if so many were timed.
    """
    runs, cpu = [Run.model_validate(content) for content in job.runs], job.device == "cpu"
    few = timed_together(runs, job.device)
    start = time.perf_counter()
    alone = train_alone(job, runs[0])
    long, limit = runs[0].epochs * alone.steps, alone.limit(runs)
    steps = affordable_steps(alone.step, len(few), limit) if cpu else min(REPLAYED, alone.steps)
    cut = alone.first(steps)
    split = cut if cpu else alone.train  # a graph for all examples can be trained with afterwards
    fused, reason = (None, "") if len(runs) == 1 and not cpu else fuse(job, few, split, steps)
    # A run alone is prepared for timing only: not where that, taking as long as the fused ones, would pass the limit.
    prepared = fused[0].setup_seconds() if fused else 0.0
    late = fused is not None and time.perf_counter() - start + prepared > limit
    captured = None if late or cpu else time_captured(job, runs[0], cut, partial(time_steps, steps=steps))
    if isinstance(captured, str):
        reason, captured = reason or captured, None
    loop_times, fused_times = [], []
    began, start = start, time.perf_counter()
    for done in range(rounds):
        now = time.perf_counter()
        if (done >= ENOUGH and now - start > PATIENCE) or (done and now - began > limit):
            break
        loop_times.append(time_steps(alone.loop, cut, steps))
        if fused is not None:
            fused_times.append(time_steps(fused[0], split, steps))
    loop_ms = 1000 * statistics.median(loop_times)
    fused_ms = 1000 * statistics.median(fused_times) / fused[1] if fused else None
    gain = estimate(fused_ms / 1000 * len(runs), long, fused[0].operations()) if fused and fused_ms else None
    choice = Choice(
        cohort=runs[0].cohort,
        device=job.device_label,
        strategy=choose(loop_ms, captured, fused_ms, long, preparing=preparing(prepared, len(runs)) if cpu else 0.0),
        threads=torch.get_num_threads(),
        runs=fused[1] if fused else 1,
        loop_ms=loop_ms,
        fused_ms=fused_ms,
        fits=fused[2] if fused else 1,
        reason=reason,
        captured_ms=captured[0] if captured else None,
        compiled=gain.saved > 0 if gain and not cpu else None,
        compile_saves=gain.saved if gain and not cpu else None,
        compile_seconds=gain.compiling if gain and not cpu else None,
    )
    return choice, (fused[0], alone.train) if fused and fused[1] == len(runs) and not cpu else None


def preparing(seconds: float, runs: int) -> float:
    """A run's share of preparing fused steps on a CPU, where every job does so anew."""
    return seconds / min(runs, CPU_COHORT)


def timing_limit(step: float, steps: int) -> float:
    """Seconds that timing may take before a training of so many steps in all, if each takes `step` seconds."""
    return max(MOST_SECONDS, TIMING_SHARE * step * steps)


def affordable_steps(step: float, runs: int, limit: float) -> int:
    """Steps of a round, such that the least rounds of both strategies keep the limit if fusing gains nothing."""
    return max(1, min(STEPS, int(limit / ((1 + ENOUGH) * (1 + runs) * step)))) if step else STEPS


def time_steps(engine: Loop | Fused, split: Split, steps: int) -> float:
    """Seconds of a training step, of so many on the split."""
    start = time.perf_counter()
    if isinstance(engine, Fused) and engine.replays:
        engine.train_steps(split, steps)
    else:
        engine.train_epoch(split, lambda share, done: None)
    return (time.perf_counter() - start) / steps


def fuse(
    job: Job, runs: list[Run], split: Split, steps: int, *, evaluated: bool = True
) -> tuple[tuple[Fused, int, int] | None, str]:
    """The runs fused and warmed up, with their number and how many would fit; or why they cannot be.

    On a GPU, where there are more runs than these, half of them first: the peaks of both tell what a run needs.
    Unless `evaluated` is False they are evaluated too: that may take longer to trace than training.
    """
    probes: list[Probe] = []
    if job.device != "cpu" and len(job.runs) > len(runs) > 1:
        half, reason = _probe(job, runs[: len(runs) // 2], split, steps, probes)
        if half is None:
            return None, reason
        del half
        gc.collect()
        torch.cuda.empty_cache()
    return _probe(job, runs, split, steps, probes, evaluated=evaluated)


def _probe(
    job: Job, runs: list[Run], split: Split, steps: int, probes: list[Probe], *, evaluated: bool = True
) -> tuple[tuple[Fused, int, int] | None, str]:
    """The runs fused and warmed up; their peak is added to the probes. Where memory runs out, half of them."""
    while True:
        try:
            return _fuse_all(job, runs, split, steps, probes, evaluated=evaluated), ""
        except StopStudyError:
            raise
        except Exception as error:
            if not out_of_memory(error) or len(runs) == 1:
                return None, explain_error(error)
        runs = runs[: len(runs) // 2]
        if job.device != "cpu":
            gc.collect()  # the peak of fewer is measured without what these left
            torch.cuda.empty_cache()


def _fuse_all(
    job: Job, runs: list[Run], split: Split, steps: int, probes: list[Probe], *, evaluated: bool
) -> tuple[Fused, int, int]:
    before = _allocated(job.device)
    group = make_group(job, runs)
    try:
        fused = Fused(group.task, group.network, group.runs, group.states, compiled=False, precision=group.precision)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # vmap warns of operations that it does run by run
            time_steps(fused, split, steps)
            if job.device != "cpu" and len(runs) == len(job.runs):
                fused.evaluate_two(split)  # training will trace it
            elif evaluated:
                fused.evaluate(_evaluated(group, split))
    except Exception as error:  # the design may raise anything
        if isinstance(error, StopStudyError) or out_of_memory(error):
            raise
        raise TiebreakError(explain_error(error, group.network)) from None
    if job.device != "cpu":
        probes.append((len(runs), max(1, torch.cuda.max_memory_allocated() - before)))
    return fused, len(runs), _fits(group, probes)


def _evaluated(group: RunGroup, split: Split) -> Split:
    """What to evaluate: a batch; on a GPU as much as is evaluated at once, since that is part of the peak."""
    size = group.runs[0].batch * (1 if group.device.type == "cpu" else REPLAYED)
    return select(group.task, split, lambda values: values[:size])


def _allocated(device: str) -> int:
    if device == "cpu":
        return 0
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _fits(group: RunGroup, probes: list[Probe]) -> int:
    """How many runs fit into memory at once: on a GPU from the measured peaks, else computed as in the plan."""
    if group.device.type == "cpu":
        slots, shape = group.states[0].slots, group.task.shape(group.data)
        kept = activation_bytes(group.network, shape, group.runs[0].batch)
        copies = sum(map(bool, (group.states[0].averages, group.states[0].best)))  # of all parameters
        held, size = max(len(own) for own in slots.values()) + copies, number_bytes(group.network)
        each = run_bytes(parameters(group.network), held, kept, size=size)
        return max(2, int(MEMORY_SHARE * free_memory() / cores() / each))
    free, _ = torch.cuda.mem_get_info()
    return runs_that_fit(probes, free)

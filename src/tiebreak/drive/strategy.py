"""Measures which strategy is faster for a cohort on this device: both train the same few steps, in turns."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from tiebreak.cost.formulas import run_bytes
from tiebreak.cost.measure import activation_bytes, parameters
from tiebreak.drive.compile_gain import estimate
from tiebreak.drive.jobs import CPU_COHORT
from tiebreak.drive.lone_run import choose, time_captured
from tiebreak.drive.memory_fit import MEMORY_SHARE, Probe, runs_that_fit
from tiebreak.drive.messages import Job, Message, StrategyMeasured
from tiebreak.drive.timing_budget import MOST_SECONDS, TIMING_SHARE
from tiebreak.errors import StopStudyError
from tiebreak.models.fusibility import explain_error
from tiebreak.plan.runs import Run
from tiebreak.results.record import Choice
from tiebreak.system import cores, free_memory
from tiebreak.tasks.interface import Split, count, select
from tiebreak.train.evaluate import BATCH, at_once
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.run_group import RunGroup, make_group, out_of_memory

STEPS, ROUNDS = 6, 5  # timed steps of a round at most; rounds, of which the median counts
ENOUGH, PATIENCE = 3, 6.0  # rounds that suffice once they have taken this many seconds
EVALUATED_SECONDS = 0.5  # of training, at most: the time of as many examples that are evaluated
GPU_RUNS = 32  # enough to see the gain, few enough to fit


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A choice, and what else of a job was timed: for predictions."""

    choice: Choice
    prepare_seconds: float  # of a job that is trained as chosen: building networks, tracing
    evaluate_seconds: float  # of one example and run
    examples: int  # of the training split


def measure(job: Job) -> Iterator[Message]:
    """The choice for the job's runs. For a design that cannot be fused it holds the reason."""
    yield StrategyMeasured(choice=time_strategies(job, evaluated=False).choice)


def time_strategies(job: Job, rounds: int = ROUNDS, *, evaluated: bool = True) -> Timing:
    """Time a few steps of the job's runs with both strategies, in turns; for predictions also what is `evaluated`."""
    runs = [Run.model_validate(content) for content in job.runs]
    few = runs[: CPU_COHORT // 2 if job.device == "cpu" else GPU_RUNS]
    start = time.perf_counter()
    single = make_group(job, runs[:1])
    train = single.split("train", {})
    loop = Loop(single.task, single.network, single.runs[0], single.states[0], single.precision)
    batch = select(single.task, train, lambda values: values[: runs[0].batch])
    _time(loop, batch, 1)  # warms up, and fails here if the design does
    step = _time(loop, batch, 1)
    built = time.perf_counter()
    whole = count(single.task, train)
    long = runs[0].epochs * -(-whole // runs[0].batch)  # steps of a run
    limit = timing_limit(step, sum(run.epochs for run in runs) * -(-whole // runs[0].batch))
    steps = affordable_steps(step, len(few), limit) if job.device == "cpu" else STEPS  # the peak of memory needs all
    cut = select(single.task, train, lambda values: values[: steps * runs[0].batch])
    fused, reason = (None, "") if len(runs) == 1 and job.device != "cpu" else _fuse(job, few, cut, steps)
    # A run alone is prepared for timing only: not where that, taking as long as the fused ones, would pass the limit.
    late = fused is not None and time.perf_counter() - start + fused[0].setup_seconds() > limit
    captured = None if late or job.device == "cpu" else time_captured(job, runs[0], cut, partial(_time, steps=steps))
    if isinstance(captured, str):
        reason, captured = reason or captured, None
    loop_times, fused_times = [], []
    prepared = {"loop": built - start, "fused": time.perf_counter() - built}
    began, start = start, time.perf_counter()
    for done in range(rounds):
        now = time.perf_counter()
        if (done >= ENOUGH and now - start > PATIENCE) or (done and now - began > limit):
            break
        loop_times.append(_time(loop, cut, steps))
        if fused is not None:
            fused_times.append(_time(fused[0], cut, steps))
    loop_ms = 1000 * statistics.median(loop_times)
    fused_ms = 1000 * statistics.median(fused_times) / fused[1] if fused else None
    strategy = choose(loop_ms, captured, fused_ms, long)
    gain = estimate(fused_ms / 1000 * len(runs), long, fused[0].operations()) if fused and fused_ms else None
    choice = Choice(
        cohort=runs[0].cohort,
        device=job.device_label,
        strategy=strategy,
        threads=torch.get_num_threads(),
        runs=fused[1] if fused else 1,
        loop_ms=loop_ms,
        fused_ms=fused_ms,
        fits=fused[2] if fused else 1,
        reason=reason,
        captured_ms=captured[0] if captured else None,
        compiled=gain.saved > 0 if gain and job.device != "cpu" else None,
        compile_saves=gain.saved if gain and job.device != "cpu" else None,
        compile_seconds=gain.compiling if gain and job.device != "cpu" else None,
    )
    timing = Timing(choice=choice, prepare_seconds=prepared.get(strategy, 0.0), evaluate_seconds=0.0, examples=whole)
    if not evaluated:
        return timing
    engine, many = (fused[0], fused[1]) if fused and strategy == "fused" else (loop, 1)
    part = batch if single.task.ordered else _validated(single, EVALUATED_SECONDS / many / step if step else BATCH)
    seconds = _evaluation_seconds(engine, part)
    if engine is not loop and job.device != "cpu":  # the first one is traced
        timing = replace(timing, prepare_seconds=timing.prepare_seconds + seconds)
        seconds = _evaluation_seconds(engine, part)
    return replace(timing, evaluate_seconds=seconds / many / count(single.task, part))


def _evaluation_seconds(engine: Loop | Fused, split: Split) -> float:
    start = time.perf_counter()
    engine.evaluate(split)
    return time.perf_counter() - start


def _validated(group: RunGroup, steps: float) -> Split:
    """Validation examples as they are evaluated: as many at once, where that takes no longer than so many steps.

    A batch of training would tell little: one forward pass over a graph answers for all of its nodes.
    """
    task, split = group.task, group.split("val", {})
    most = at_once(task, split, BATCH)
    if not task.shared:
        most = min(most, max(1, int(steps)) * group.runs[0].batch)
    return select(task, split, lambda values: values[:most])


def timing_limit(step: float, steps: int) -> float:
    """Seconds that timing may take before a training of so many steps in all, if each takes `step` seconds."""
    return max(MOST_SECONDS, TIMING_SHARE * step * steps)


def affordable_steps(step: float, runs: int, limit: float) -> int:
    """Steps of a round, such that the least rounds of both strategies keep the limit if fusing gains nothing."""
    return max(1, min(STEPS, int(limit / ((1 + ENOUGH) * (1 + runs) * step)))) if step else STEPS


def _time(engine: Loop | Fused, split: Split, steps: int) -> float:
    """Seconds of a training step, of so many on the split."""
    start = time.perf_counter()
    engine.train_epoch(split, lambda share, done: None)
    return (time.perf_counter() - start) / steps


def _fuse(job: Job, runs: list[Run], split: Split, steps: int) -> tuple[tuple[Fused, int, int] | None, str]:
    """The runs fused and warmed up, with their number and how many would fit; or why they cannot be.

    On a GPU, where there are more runs than these, half of them first: the peaks of both tell what a run needs.
    """
    probes: list[Probe] = []
    if job.device != "cpu" and len(job.runs) > len(runs) > 1:
        half, reason = _probe(job, runs[: len(runs) // 2], split, steps, probes)
        if half is None:
            return None, reason
        del half
        gc.collect()
        torch.cuda.empty_cache()
    return _probe(job, runs, split, steps, probes)


def _probe(
    job: Job, runs: list[Run], split: Split, steps: int, probes: list[Probe]
) -> tuple[tuple[Fused, int, int] | None, str]:
    """The runs fused and warmed up; their peak is added to the probes. Where memory runs out, half of them."""
    while True:
        try:
            before = _allocated(job.device)
            group = make_group(job, runs)
            fused = Fused(
                group.task, group.network, group.runs, group.states, compiled=False, precision=group.precision
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # vmap warns of operations that it does run by run
                _time(fused, split, steps)
                if job.device != "cpu" and len(runs) == len(job.runs):
                    fused.evaluate_two(split)  # training will trace it
                else:
                    fused.evaluate(_evaluated(group, split))
            if job.device != "cpu":
                probes.append((len(runs), max(1, torch.cuda.max_memory_allocated() - before)))
            return (fused, len(runs), _fits(group, probes)), ""
        except StopStudyError:
            raise
        except Exception as error:
            if out_of_memory(error) and len(runs) > 1:
                runs = runs[: len(runs) // 2]
                continue
            return None, explain_error(error)


def _evaluated(group: RunGroup, split: Split) -> Split:
    """What to evaluate: a batch; on a GPU as much as is evaluated at once, since that is part of the peak."""
    size = group.runs[0].batch
    return select(group.task, split, lambda values: values[:size]) if group.device.type == "cpu" else split


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
        each = run_bytes(parameters(group.network), max(len(own) for own in slots.values()) + copies, kept)
        return max(2, int(MEMORY_SHARE * free_memory() / cores() / each))
    free, _ = torch.cuda.mem_get_info()
    return runs_that_fit(probes, free)

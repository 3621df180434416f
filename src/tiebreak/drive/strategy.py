"""Measures which strategy is faster for a cohort on this device: both train the same few steps, in turns."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from tiebreak.cost.formulas import run_bytes
from tiebreak.cost.measure import activation_bytes, parameters
from tiebreak.drive.compile_gain import estimate
from tiebreak.drive.jobs import CPU_COHORT
from tiebreak.drive.lone_run import choose, time_captured
from tiebreak.drive.memory_fit import MEMORY_SHARE, Probe, runs_that_fit
from tiebreak.drive.messages import Job, Message, StrategyMeasured
from tiebreak.errors import StopStudyError
from tiebreak.models.fusibility import explain_error
from tiebreak.plan.runs import Run
from tiebreak.results.record import Choice
from tiebreak.system import cores, free_memory
from tiebreak.tasks.interface import Split, count, select
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.run_group import RunGroup, make_group, out_of_memory

STEPS, ROUNDS = 6, 5  # timed steps of a round; rounds, of which the median counts
ENOUGH, PATIENCE = 3, 6.0  # rounds that suffice once they have taken this many seconds
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
    yield StrategyMeasured(choice=time_strategies(job).choice)


def time_strategies(job: Job, rounds: int = ROUNDS) -> Timing:
    """Time a few steps of the job's runs with both strategies, in turns."""
    runs = [Run.model_validate(content) for content in job.runs]
    few = runs[: CPU_COHORT // 2 if job.device == "cpu" else GPU_RUNS]
    start = time.perf_counter()
    single = make_group(job, runs[:1])
    train = single.split("train", {})
    cut = select(single.task, train, lambda values: values[: STEPS * runs[0].batch])
    loop = Loop(single.task, single.network, single.runs[0], single.states[0], single.precision)
    _time(loop, cut)  # warms up, and fails here if the design does
    built = time.perf_counter()
    fused, reason = (None, "") if len(runs) == 1 and job.device != "cpu" else _fuse(job, few, cut)
    whole = count(single.task, train)
    captured = None if job.device == "cpu" else time_captured(job, runs[0], cut, _time)
    if isinstance(captured, str):
        reason, captured = reason or captured, None
    loop_times, fused_times = [], []
    prepared = {"loop": built - start, "fused": time.perf_counter() - built}
    start = time.perf_counter()
    for done in range(rounds):
        if done >= ENOUGH and time.perf_counter() - start > PATIENCE:
            break
        loop_times.append(_time(loop, cut))
        if fused is not None:
            fused_times.append(_time(fused[0], cut))
    loop_ms = 1000 * statistics.median(loop_times)
    fused_ms = 1000 * statistics.median(fused_times) / fused[1] if fused else None
    steps = runs[0].epochs * -(-whole // runs[0].batch)
    strategy = choose(loop_ms, captured, fused_ms, steps)
    gain = estimate(fused_ms / 1000 * len(runs), steps, fused[0].operations()) if fused and fused_ms else None
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
    )
    engine, many = (fused[0], fused[1]) if fused and strategy == "fused" else (loop, 1)
    batch = select(single.task, train, lambda values: values[: runs[0].batch])
    start = time.perf_counter()
    engine.evaluate(batch)
    seconds = (time.perf_counter() - start) / many / count(single.task, batch)
    return Timing(choice=choice, prepare_seconds=prepared.get(strategy, 0.0), evaluate_seconds=seconds, examples=whole)


def _time(engine: Loop | Fused, split: Split) -> float:
    """Seconds of a training step."""
    start = time.perf_counter()
    engine.train_epoch(split, lambda share, steps: None)
    return (time.perf_counter() - start) / STEPS


def _fuse(job: Job, runs: list[Run], split: Split) -> tuple[tuple[Fused, int, int] | None, str]:
    """The runs fused and warmed up, with their number and how many would fit; or why they cannot be.

    On a GPU, where there are more runs than these, half of them first: the peaks of both tell what a run needs.
    """
    probes: list[Probe] = []
    if job.device != "cpu" and len(job.runs) > len(runs) > 1:
        half, reason = _probe(job, runs[: len(runs) // 2], split, probes)
        if half is None:
            return None, reason
        del half
        gc.collect()
        torch.cuda.empty_cache()
    return _probe(job, runs, split, probes)


def _probe(job: Job, runs: list[Run], split: Split, probes: list[Probe]) -> tuple[tuple[Fused, int, int] | None, str]:
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
                _time(fused, split)
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

"""Which strategy is faster for a cohort on this device: both train the same few steps, in turns, and are timed."""

from __future__ import annotations

import os
import statistics
import time
import warnings
from collections.abc import Iterator

import torch

from tiebreak.cost.formulas import run_bytes
from tiebreak.cost.measure import activation_bytes, parameters
from tiebreak.drive.jobs import CPU_COHORT, cohort_key
from tiebreak.drive.messages import Job, Measured, Message
from tiebreak.models.fusibility import in_words
from tiebreak.plan.runs import Run
from tiebreak.results.record import Choice, Strategy
from tiebreak.tasks.interface import Split, select
from tiebreak.train.cohort import begin, out_of_memory
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.trainer import Work

STEPS, ROUNDS = 6, 5  # timed steps of a round; the median of so many rounds counts
ENOUGH, PATIENCE = 3, 6.0  # rounds that do where they have taken so many seconds
GAIN = 1.05  # fused has to be faster by this factor, or the loop stays: its numbers are the specification's
GPU_RUNS = 32  # enough to see the gain, few enough to fit
MEMORY_SHARE = 0.8  # of what is free


def measure(job: Job) -> Iterator[Message]:
    """The choice for the job's runs. A design that cannot be fused is told with the reason."""
    runs = [Run.model_validate(content) for content in job.runs]
    few = runs[: CPU_COHORT // 2 if job.device == "cpu" else GPU_RUNS]
    single = begin(job, runs[:1])
    train = single.split("train", {})
    cut = select(single.task, train, lambda values: values[: STEPS * runs[0].batch])
    loop = Loop(single.task, single.network, single.runs[0], single.states[0])
    _time(loop, cut)  # warms up, and fails here if the design does
    fused, reason = _fuse(job, few, cut)
    loop_times, fused_times = [], []
    start = time.perf_counter()
    for done in range(ROUNDS):
        if done >= ENOUGH and time.perf_counter() - start > PATIENCE:
            break
        loop_times.append(_time(loop, cut))
        if fused is not None:
            fused_times.append(_time(fused[0], cut))
    loop_ms = 1000 * statistics.median(loop_times)
    fused_ms = 1000 * statistics.median(fused_times) / fused[1] if fused else None
    strategy: Strategy = "fused" if fused_ms is not None and fused_ms * GAIN < loop_ms else "loop"
    yield Measured(
        choice=Choice(
            cohort=cohort_key(runs[0]),
            device=job.place,
            strategy=strategy,
            threads=torch.get_num_threads(),
            runs=fused[1] if fused else 1,
            loop_ms=loop_ms,
            fused_ms=fused_ms,
            fits=fused[2] if fused else 1,
            reason=reason,
        )
    )


def _time(trainer: Loop | Fused, split: Split) -> float:
    """Seconds of a step: training only, with whatever the GPU still has to do."""
    start = time.perf_counter()
    trainer.train_epoch(split, lambda share, steps: None)
    return (time.perf_counter() - start) / STEPS


def _fuse(job: Job, runs: list[Run], split: Split) -> tuple[tuple[Fused, int, int] | None, str]:
    """The runs fused and warmed up, with their number and how many would fit; or why they cannot be."""
    while True:
        try:
            before = _allocated(job.device)
            work = begin(job, runs)
            fused = Fused(work.task, work.network, work.runs, work.states, compiled=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that vmap does something run by run: the clock will tell
                _time(fused, split)
                fused.evaluate(_evaluated(work, split))
            return (fused, len(runs), _fits(work, before)), ""
        except Exception as error:
            if isinstance(error, RuntimeError) and out_of_memory(error) and len(runs) > 1:
                runs = runs[: len(runs) // 2]
                continue
            return None, in_words(error)


def _evaluated(work: Work, split: Split) -> Split:
    """What to evaluate: on a GPU as much as is evaluated at once, which is part of the peak; else a batch will do."""
    size = work.runs[0].batch
    return select(work.task, split, lambda values: values[:size]) if work.device.type == "cpu" else split


def _allocated(device: str) -> int:
    if device == "cpu":
        return 0
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _fits(work: Work, before: int) -> int:
    """How many runs fit into memory at once: on a GPU from the peak that these have reached, else as in the plan."""
    if work.device.type == "cpu":
        slots, shape = work.states[0].slots, work.task.shape(work.data)
        kept = activation_bytes(work.network, shape, work.runs[0].batch)
        each = run_bytes(parameters(work.network), max(len(own) for own in slots.values()), kept)
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(2, int(MEMORY_SHARE * free / (os.cpu_count() or 1) / each))
    each = max(1, (torch.cuda.max_memory_allocated() - before) // len(work.runs))
    free, _ = torch.cuda.mem_get_info()
    return max(2, int(MEMORY_SHARE * free / each))

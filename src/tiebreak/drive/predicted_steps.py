"""What `tiebreak plan` predicts a cohort's time from: a few steps on a CPU, with the strategy that would be chosen.

As `strategy` times them before training, but in seconds, where that may take 5 % of the training: steps that are slow
are timed once, with fewer runs at a time, or not fused at all.
"""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import dataclass, replace

import torch

from tiebreak.drive.lone_run import choose
from tiebreak.drive.messages import Job
from tiebreak.drive.strategy import (
    ENOUGH,
    Alone,
    affordable_steps,
    fuse,
    preparing,
    time_steps,
    timed_together,
    train_alone,
)
from tiebreak.errors import StopStudyError
from tiebreak.models.fusibility import explain_error
from tiebreak.plan.runs import Run
from tiebreak.results.record import Choice
from tiebreak.tasks.interface import Split, count, select
from tiebreak.train.evaluate import BATCH, at_once
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop

MOST_SECONDS = 10.0  # of timing a cohort, without reading data and tracing
EVALUATED_SECONDS = 0.5  # of training, at most: the time of as many examples that are evaluated


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A choice, and what else of a job was timed."""

    choice: Choice
    prepare_seconds: float  # of a job that is trained as chosen: building networks, tracing
    evaluate_seconds: float  # of one example and run
    examples: int  # of the training split
    steps: int = 1  # of a round
    shortened: bool = False  # less was timed than before training
    run_seconds: float = 0.0  # that timing before training takes, at least


def time_cohort(job: Job, *, fusing: bool = True) -> Timing:
    """Time the job's runs with both strategies; without `fusing`, or where that would take too long, in a loop only."""
    runs = [Run.model_validate(content) for content in job.runs]
    alone = train_alone(job, runs[0])
    few, allowed = timed_together(runs, "cpu"), alone.limit(runs)
    needed = least_seconds(alone.step, len(few), allowed) if fusing else 0.0
    limit = min(MOST_SECONDS, allowed)
    wanted, few = len(few), few[: affordable_runs(alone.step, len(few), limit)] if fusing else []
    steps = affordable_steps(alone.step, max(1, len(few)), limit)
    cut = alone.first(steps)
    start = time.perf_counter() - 2 * alone.step
    fused, reason = fuse(job, few, cut, steps, evaluated=False) if few else (None, "")
    prepared = fused[0].setup_seconds() if fused else 0.0
    loop_times: list[float] = []
    fused_times: list[float] = []
    for done in range(ENOUGH):
        if done and time.perf_counter() - start - prepared + loop_times[-1] * steps * (1 + len(few)) > limit:
            break  # a round may take as long as if fusing gained nothing
        loop_times.append(time_steps(alone.loop, cut, steps))
        if fused is not None:
            fused_times.append(time_steps(fused[0], cut, steps))
    loop_ms = 1000 * statistics.median(loop_times)
    fused_ms = 1000 * statistics.median(fused_times) / fused[1] if fused else None
    choice = Choice(
        cohort=runs[0].cohort,
        device=job.device_label,
        strategy=choose(
            loop_ms, None, fused_ms, runs[0].epochs * alone.steps, preparing=preparing(prepared, len(runs))
        ),
        threads=torch.get_num_threads(),
        runs=fused[1] if fused else 1,
        loop_ms=loop_ms,
        fused_ms=fused_ms,
        fits=fused[2] if fused else 1,
        reason=reason,
    )
    timing = Timing(
        choice=choice,
        prepare_seconds=prepared if choice.strategy == "fused" else alone.built,
        evaluate_seconds=0.0,
        examples=count(alone.group.task, alone.train),
        steps=steps,
        shortened=fusing and len(few) < wanted,
        run_seconds=needed,
    )
    return _evaluated(timing, alone, fused[0] if fused else None, len(runs))


def affordable_runs(step: float, runs: int, limit: float) -> int:
    """How many runs are fused, such that warming up and a round keep the limit if fusing gains nothing; 0: too few.

    Two steps of the loop were done before, the round has another.
    """
    if step <= 0:
        return runs
    most = int((limit / step - 3) / 2)
    return min(runs, most) if most >= min(runs, 2) else 0


def least_seconds(step: float, runs: int, limit: float) -> float:
    """Seconds that timing before training takes, if fusing gains nothing."""
    return (1 + ENOUGH) * (1 + runs) * step * affordable_steps(step, runs, limit)


def _evaluated(timing: Timing, alone: Alone, fused: Fused | None, runs: int) -> Timing:
    """With the seconds of evaluation. Where that cannot be fused, the runs are trained one after the other.

    So they are where tracing it takes longer than fused steps save.
    """
    step, batch = alone.step, alone.first(1)
    if timing.choice.strategy == "fused" and fused is not None:
        many = timing.choice.runs
        part = batch if alone.group.task.ordered else _validated(alone, EVALUATED_SECONDS / many / max(step, 1e-9))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # vmap warns of operations that it does run by run
                seconds = _evaluation_seconds(fused, part)
        except StopStudyError:
            raise
        except Exception as error:  # the design may raise anything
            choice = replace(timing.choice, strategy="loop", fused_ms=None, runs=1, fits=1, reason=explain_error(error))
            timing = replace(timing, choice=choice, prepare_seconds=alone.built)
        else:
            traced = fused.setup_seconds()
            each = max(0.0, seconds - traced) / many / count(alone.group.task, part)
            prepared = timing.prepare_seconds + traced
            if _pays(timing.choice, alone, preparing(prepared, runs)):
                return replace(timing, evaluate_seconds=each, prepare_seconds=prepared)
            timing = replace(timing, choice=replace(timing.choice, strategy="loop"), prepare_seconds=alone.built)
    part = batch if alone.group.task.ordered else _validated(alone, EVALUATED_SECONDS / max(step, 1e-9))
    return replace(timing, evaluate_seconds=_evaluation_seconds(alone.loop, part) / count(alone.group.task, part))


def _pays(choice: Choice, alone: Alone, preparing: float) -> bool:
    steps = alone.group.runs[0].epochs * alone.steps
    return choose(choice.loop_ms, None, choice.fused_ms, steps, preparing=preparing) == "fused"


def _evaluation_seconds(engine: Loop | Fused, split: Split) -> float:
    start = time.perf_counter()
    engine.evaluate(split)
    return time.perf_counter() - start


def _validated(alone: Alone, steps: float) -> Split:
    """Validation examples as they are evaluated: as many at once, where that takes no longer than so many steps.

    A batch of training would tell little: one forward pass over a graph answers for all of its nodes.
    """
    task, split = alone.group.task, alone.group.split("val", {})
    most = at_once(task, split, BATCH)
    if not task.shared:
        most = min(most, max(1, int(steps * alone.group.runs[0].batch)))
    return select(task, split, lambda values: values[:most])

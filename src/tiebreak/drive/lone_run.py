"""A step of one run, traced and captured as a CUDA graph, timed against the loop."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from tiebreak.drive.jobs import GAIN
from tiebreak.drive.messages import Job
from tiebreak.errors import StopStudyError
from tiebreak.models.fusibility import explain_error
from tiebreak.plan.runs import Run
from tiebreak.results.record import Strategy
from tiebreak.tasks.interface import Split
from tiebreak.train.fused.engine import Fused
from tiebreak.train.run_group import make_group

ROUNDS = 3

Clock = Callable[[Fused, Split], float]  # seconds of a step


def time_captured(job: Job, run: Run, split: Split, clock: Clock) -> tuple[float, float] | str:
    """Milliseconds of a step and seconds of preparing it; or why the run's step cannot be captured."""
    start, network = time.perf_counter(), None
    try:
        group = make_group(job, [run])
        network = group.network
        engine = Fused(
            group.task, group.network, group.runs, group.states, compiled=False, precision=group.precision, alone=True
        )
        clock(engine, split)  # warms up
        prepared = time.perf_counter() - start
        return 1000 * statistics.median(clock(engine, split) for _ in range(ROUNDS)), prepared
    except StopStudyError:
        raise
    except Exception as error:  # the design may raise anything
        return explain_error(error, network)


def choose(
    loop_ms: float,
    captured: tuple[float, float] | None,
    fused_ms: float | None,
    steps: int,
    *,
    preparing: float = 0.0,
) -> Strategy:
    """The fastest strategy for runs of so many steps. Captured, every run is prepared anew, which must pay.

    So must fused steps: `preparing` are the seconds for it that a run has a share of.
    """
    best: Strategy = "loop"
    best_ms = loop_ms
    if captured is not None and captured[0] * GAIN + 1000 * captured[1] / max(1, steps) < loop_ms:
        best, best_ms = "captured", captured[0]
    if fused_ms is not None and fused_ms * GAIN + 1000 * preparing / max(1, steps) < best_ms:
        best = "fused"
    return best

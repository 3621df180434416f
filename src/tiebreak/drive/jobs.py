"""How cohorts become jobs: with which strategy, how many runs at once, and what is said about it. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.record import Choice, Strategy

CPU_COHORT = 16  # the fastest of 4, 8 and 16 for the CNNs of the reports; more were not tried

Wanted = Literal["auto", "loop", "fused"]


def cohort_key(run: Run) -> str:
    """The cohort that a run belongs to. Numbers per run (seed, hyper-parameters) are not part of it."""
    return run.cohort


def needs_measuring(runs: int, choice: Choice | None, wanted: Wanted) -> bool:
    """Whether the strategies have to be timed first: not for a lone run, nor where the answer is known or given."""
    return choice is None and wanted != "loop" and (runs > 1 or wanted == "fused")


def strategy_for(name: str, choice: Choice | None, wanted: Wanted) -> Strategy:
    """How the cohort called `name` is trained: as asked for, else as measured, else as the specification does."""
    if wanted == "fused" and choice is not None and choice.reason:
        raise TiebreakError(f"{name} cannot be fused: {choice.reason}; use --strategy auto or loop")
    if wanted == "auto":
        return choice.strategy if choice is not None else "loop"
    return wanted


def shares(
    runs: Sequence[Run], strategy: Strategy, choice: Choice | None, device: str, processes: int
) -> list[list[Run]]:
    """The runs of a cohort as jobs: one each in a loop; fused, as many at once as fit, and work for every process."""
    if strategy == "loop":
        return [[run] for run in runs]
    parts = _parts(len(runs), len(runs) if choice is None else max(1, choice.fits), device, processes)
    ends = [len(runs) * part // parts for part in range(parts + 1)]
    return [list(runs[start:end]) for start, end in pairwise(ends)]


def most_at_once(runs: int, device: str, processes: int) -> int:
    """How many runs of a cohort one process would train at once if all fitted: for predictions."""
    return -(-runs // _parts(runs, runs, device, processes))


def _parts(runs: int, fits: int, device: str, processes: int) -> int:
    """Into how many jobs of nearly equal size fused runs are split."""
    if device != "cpu":
        return -(-runs // fits)
    needed = -(-runs // min(fits, CPU_COHORT))
    even = -(-needed // processes) * processes  # as many for each process, so that all end together
    return max(needed, min(even, runs // 2))  # but never a lone run for the sake of it


def told(name: str, runs: int, choice: Choice, strategy: Strategy) -> str:
    """What was measured, in one line."""
    what = f"{name}: {runs} run{'s' if runs > 1 else ''}"
    if choice.fused_ms is None:
        return f"{what} one after the other{f': {choice.reason}' if choice.reason else ''}"
    times = f"({choice.fused_ms:.2g} ms a step and run, {choice.loop_ms:.2g} in a loop)"
    if strategy == "fused":
        return f"{what} fused, {choice.loop_ms / choice.fused_ms:.1f} times as fast as one after the other {times}"
    return f"{what} one after the other: {choice.reason or 'fused is not faster'} {times}"

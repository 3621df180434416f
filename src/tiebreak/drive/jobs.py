"""How cohorts become jobs: with which strategy, and how many runs at once. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan, Run, cohort_names
from tiebreak.results.record import Choice, Strategy
from tiebreak.text import number_of, rounded

ROUNDS = 3  # of jobs for each place of a cluster, at least: the last round does not wait for one large cohort
GAIN = 1.05  # a strategy must be faster than a simpler one by this factor
CPU_COHORT = 16  # the fastest of 4, 8 and 16 for the CNNs of the reports; more were not tried

StrategyOption = Literal["auto", "loop", "fused"]


def needs_measuring(runs: int, choice: Choice | None, option: StrategyOption, device: str) -> bool:
    """Whether the strategies have to be timed first: not for a single run on a CPU, nor if the choice is known."""
    return choice is None and option != "loop" and (runs > 1 or option == "fused" or device != "cpu")


def refuse_loop(name: str, reason: str, option: StrategyOption) -> None:
    """Refuse a cohort that cannot be fused, for that reason, where nothing else is allowed."""
    if option == "fused" and reason:
        raise TiebreakError(f"{name} cannot be fused: {reason}; use --strategy auto or loop")


def refuse_planned_loops(plan: Plan, groups: Mapping[str, Sequence[Run]], option: StrategyOption) -> None:
    """The same for what the plan found, before anything is timed."""
    reasons = {identity: arm.cannot_fuse for arm in plan.arms for identity in arm.runs.values()}
    for key, name in cohort_names(groups).items():
        refuse_loop(name, reasons.get(groups[key][0].identity, ""), option)


def strategy_for(name: str, choice: Choice | None, option: StrategyOption) -> Strategy:
    """How the cohort called `name` is trained: as the option says, else as measured, else in a loop."""
    refuse_loop(name, choice.reason if choice is not None else "", option)
    if option == "auto":
        return choice.strategy if choice is not None else "loop"
    return option


def split_into_jobs(
    runs: Sequence[Run], strategy: Strategy, choice: Choice | None, device: str, processes: int
) -> list[list[Run]]:
    """The runs of each job of a cohort: one, or fused as many as fit, in equal parts for all processes."""
    if strategy != "fused":
        return [[run] for run in runs]
    parts = _parts(len(runs), len(runs) if choice is None else max(1, choice.fits), device, processes)
    ends = [len(runs) * part // parts for part in range(parts + 1)]
    return [list(runs[start:end]) for start, end in pairwise(ends)]


def most_at_once(runs: int, device: str, processes: int) -> int:
    """How many runs of a cohort one process would train at once if all fit in memory: for predictions."""
    return -(-runs // _parts(runs, runs, device, processes))


def places_for(runs: int, total: int, slots: int) -> int:
    """Over how many of a cluster's places a cohort is spread: all of them, unless other cohorts keep them busy too.

    Runs gain from being fused with many others, so that small jobs are made only where places would be idle.
    """
    return max(1, min(slots, -(-ROUNDS * slots * runs // max(1, total))))


def _parts(runs: int, fits: int, device: str, processes: int) -> int:
    """Into how many jobs of nearly equal size fused runs are split."""
    needed = -(-runs // (min(fits, CPU_COHORT) if device == "cpu" else fits))
    even = -(-needed // processes) * processes  # as many for each process, so that all end together
    return max(needed, min(even, runs // 2))  # but never a lone run for the sake of it


def describe_choice(name: str, runs: int, choice: Choice, strategy: Strategy) -> str:
    """The measurement and the strategy in one line for the user."""
    what, captured = f"{name}: {number_of(runs, 'run')}", ""
    if choice.captured_ms is not None:
        captured = f"{rounded(choice.captured_ms)} ms as a CUDA graph, "
    how = " as CUDA graphs" if strategy == "captured" else ""
    if choice.fused_ms is None:
        times = f" ({captured}{rounded(choice.loop_ms)} ms in a loop)" if captured else ""
        return f"{what} one after the other{how}{f': {choice.reason}' if choice.reason else ''}{times}"
    times = f"({rounded(choice.fused_ms)} ms a step and run, {captured}{rounded(choice.loop_ms)} ms in a loop)"
    if strategy == "fused":
        # On a GPU the alternative is a graph: where that was not timed, nothing is said against a slower loop.
        fair = choice.device.startswith("cpu") or choice.captured_ms is not None
        faster = f", {choice.alone_ms / choice.fused_ms:.1f} times as fast as one after the other" if fair else ""
        return f"{what} fused{faster} {times}{_compiling(choice)}"
    slower = choice.fused_ms * GAIN >= choice.alone_ms
    why = "fused is not faster" if slower else "preparing fused steps would take longer than it saves"
    return f"{what} one after the other{how}: {choice.reason or why} {times}"


def _compiling(choice: Choice) -> str:
    """What compiling is expected to take and to save, or why it is not done."""
    if choice.compile_saves is None:
        return ""
    takes = "" if choice.compile_seconds is None else f" (about {rounded(choice.compile_seconds)} s)"
    if choice.compiled:
        return f"; compiled{takes}, which should save {rounded(choice.compile_saves)} s"
    return f"; not compiled: that{takes} would take longer than it saves"

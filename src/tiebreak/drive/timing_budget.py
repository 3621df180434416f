"""Whether the arms of a study have to be timed in turns before training, and how long that may take. No torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tiebreak.plan.runs import Run
from tiebreak.results.record import StepTimes

TIMING_SHARE = 0.05  # of the predicted training time: what timing may take
LEAST_SECONDS, MOST_SECONDS = 1.0, 10.0  # of timing in turns: a small study has times too
SECONDS_EACH = 2.0  # for each cohort, at most

Times = Mapping[tuple[str, str], StepTimes]  # by cohort and device


def needs_timing(arms: Collection[str], left: Mapping[str, Sequence[Run]], known: Times, device: str) -> bool:
    """Whether steps of the arms' cohorts have to be timed in turns: not if they were, all together.

    Nor where there is a single cohort, or `left` to train (by cohort) is never more than one run: nothing is compared.
    """
    groups = [times.group if (times := known.get((each, device))) else "" for each in arms]
    several = len(arms) > 1 and max(map(len, left.values()), default=0) > 1
    return several and ("" in groups or len(set(groups)) > 1)


def training_seconds(left: Mapping[str, Sequence[Run]], step_ms: Mapping[str, float], examples: int) -> float:
    """The training of all runs that are left, one after the other; `examples` of an epoch."""
    return sum(
        step_ms[key] / 1000 * -(-examples // runs[0].batch) * sum(run.epochs for run in runs)
        for key, runs in left.items()
    )


def timing_seconds(cohorts: int, training: float) -> float:
    """How long steps may be timed in turns before a training of so many seconds."""
    return min(MOST_SECONDS, SECONDS_EACH * cohorts, max(LEAST_SECONDS, TIMING_SHARE * training))

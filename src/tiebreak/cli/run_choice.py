"""Which trained run stands for an arm, and which arm for a study: chosen on validation. No torch."""

from __future__ import annotations

from tiebreak.api import Result
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.tally import Tally
from tiebreak.verdict.sides import arm_scores, usable_scores


def best_arm(result: Result, tally: Tally) -> str:
    """The arm with the best mean on validation; the test set is for reporting, not for choosing."""
    sign = 1 if result.study.goal() == "max" else -1
    means = {}
    for arm in result.study.arms:
        scores = arm_scores(tally, arm.name, tally.chosen(arm.name), f"val_{result.study.metric}")
        if scores:
            means[arm.name] = sign * sum(scores.values()) / len(scores)
    if not means:
        raise TiebreakError(f"{result.folder}: no finished run with a finite score yet; `tiebreak run` trains them")
    return max(means, key=lambda name: means[name])


def chosen_run(result: Result, tally: Tally, arm: str, seed: int | None) -> Run:
    """The arm's run at its chosen setting: that of `seed`, or the best on validation."""
    setting = tally.chosen(arm)
    scores = tally.scores(arm, setting, f"val_{result.study.metric}")
    if not scores:
        raise TiebreakError(f"{result.folder}: arm {arm!r} has no finished run yet; `tiebreak run` trains them")
    if seed is not None and seed not in scores:
        raise TiebreakError(
            f"{result.folder}: arm {arm!r} has no finished run of seed {seed}; there are {sorted(scores)}"
        )
    sign = 1 if result.study.goal() == "max" else -1
    comparable = usable_scores(scores) or scores
    best = seed if seed is not None else max(comparable, key=lambda each: sign * comparable[each])
    return result.plan.runs[result.plan.arm(arm).run(setting, best)]

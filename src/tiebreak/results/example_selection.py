"""What is worth showing of a study's runs: which of them, and which test examples tell the arms apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiebreak.results.tally import Tally

APART, HARD = 4, 4  # examples that the one arm gets and the other does not, each way; examples that both get wrong


def to_show(tally: Tally) -> dict[str, tuple[int, ...]]:
    """The runs to make exhibits of: every arm's at its chosen setting. The first of each arm shows test examples."""
    examples = telling_examples(tally)
    wanted: dict[str, tuple[int, ...]] = {}
    for arm in tally.study.arms:
        setting = tally.chosen(arm.name)
        seeds = list(tally.scores(arm.name, setting, tally.study.metric))
        for seed in seeds:
            identity = tally.plan.arm(arm.name).run(setting, seed)
            wanted.setdefault(identity, examples if seed == seeds[0] else ())
    return wanted


def telling_examples(tally: Tally) -> tuple[int, ...]:
    """Test examples on which the arms of the primary comparison differ most, then those that are hard for both."""
    primary = next(item for item in tally.study.comparisons if item.primary)
    arms = [arm for arm in primary.arms() if tally.plan.arm(arm).evaluation == "default"][:2]
    rates = [rate for rate in (_rate(tally, arm) for arm in arms) if rate is not None]
    if not rates or any(len(rate) != len(rates[0]) for rate in rates):
        return ()
    first, last = rates[0], rates[-1]
    order = [
        *np.argsort(last - first, kind="stable")[:APART],
        *np.argsort(first - last, kind="stable")[:APART],
        *np.argsort(first + last, kind="stable")[:HARD],
    ]
    return tuple(dict.fromkeys(int(index) for index in order))


def _rate(tally: Tally, arm: str) -> npt.NDArray[np.float64] | None:
    """How well each test example is got right (more is better), over the seeds of the arm's chosen setting."""
    outcomes = tally.outcomes(arm, tally.chosen(arm), tally.study.metric)
    sign = 1 if tally.study.goal() == "max" else -1
    return np.asarray(sign * np.mean([*outcomes.values()], axis=0, dtype=np.float64)) if outcomes else None

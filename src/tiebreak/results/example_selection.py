"""Which runs of a study get exhibits, and which test examples these show: those on which the arms differ most."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study

MOVED = {"disturbed", "shift", "rotate", "scale"}  # evaluation options
APART, HARD = 4, 4  # examples that only one arm gets right, for either arm; examples that both get wrong


def exhibit_runs(tally: Tally) -> dict[str, tuple[int, ...]]:
    """The runs to make exhibits of, each with the test examples to show.

    Every arm's runs at its chosen setting; only the first run of an arm shows test examples. Of classified images the
    other runs have robustness curves only, which are made where the report shows them.
    """
    examples = contrasting_examples(tally)
    only_first = tally.study.task == "classify" and not shows_moved_images(tally.study)
    found: dict[str, tuple[int, ...]] = {}
    for arm in tally.study.arms:
        setting = tally.chosen(arm.name)
        seeds = list(tally.scores(arm.name, setting, tally.study.metric))
        for seed in seeds[:1] if only_first else seeds:
            identity = tally.plan.arm(arm.name).run(setting, seed)
            found.setdefault(identity, examples if seed == seeds[0] else ())
    return found


def shows_moved_images(study: Study) -> bool:
    """Whether the report shows accuracy on moved images: an arm is evaluated on such images."""
    return any(MOVED & arm.evaluation.keys() for arm in study.arms)


def contrasting_examples(tally: Tally) -> tuple[int, ...]:
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
    """The mean score of each test example (more is better) over the seeds of the arm's chosen setting."""
    outcomes = tally.outcomes(arm, tally.chosen(arm), tally.study.metric)
    sign = 1 if tally.study.goal() == "max" else -1
    return np.asarray(sign * np.mean([*outcomes.values()], axis=0, dtype=np.float64)) if outcomes else None

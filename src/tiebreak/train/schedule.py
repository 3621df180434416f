"""The learning rate schedule: a factor for every step, computed before the epoch begins."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tiebreak.study.schema import Schedule


def factors(schedule: Schedule, epoch: int, steps: int, epochs: int) -> npt.NDArray[np.float64]:
    """The factors [steps] of epoch `epoch` (from 0) of `epochs`.

    All rise linearly from the floor to 1 over `warmup_epochs`. Then constant stays at 1; linear and cosine fall to the
    floor over `decay_epochs` and stay there. The cosine changes at every step, the others once per epoch, as in
    report R0.
    """
    if schedule.kind != "cosine":
        return np.full(steps, _at(schedule, float(epoch), epochs))
    return np.array([_at(schedule, epoch + step / steps, epochs) for step in range(steps)])


def _at(schedule: Schedule, position: float, epochs: int) -> float:
    floor = schedule.floor
    if position < schedule.warmup_epochs:
        return floor + (1 - floor) * position / schedule.warmup_epochs
    if schedule.kind == "constant":
        return 1.0
    decay = schedule.decay_epochs or max(epochs - schedule.warmup_epochs, 1)
    done = min((position - schedule.warmup_epochs) / decay, 1.0)
    left = 1 - done if schedule.kind == "linear" else 0.5 * (1 + math.cos(math.pi * done))
    return floor + (1 - floor) * left

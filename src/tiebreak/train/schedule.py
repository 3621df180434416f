"""The learning rate schedule: a factor for every step, computed before the epoch begins."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tiebreak.study.schema import Schedule

START, END = 1 / 25, 1 / 25 / 1e4  # of one-cycle, as in torch


def factors(schedule: Schedule, epoch: int, steps: int, epochs: int, reduction: float = 1.0) -> npt.NDArray[np.float64]:
    """The factors [steps] of epoch `epoch` (from 0) of `epochs`.

    All but one-cycle rise linearly from the floor to 1 over `warmup_epochs`. Then constant stays at 1; linear and
    cosine fall to the floor over `decay_epochs` and stay there; step falls by `factor` every `step_epochs`; plateau is
    at `reduction`, which validation decides. Cosine and one-cycle change at every step, the others once per epoch, as
    in report R0.
    """
    if schedule.kind == "one-cycle":
        return _one_cycle(schedule.pct_start or 0.0, np.arange(epoch * steps, (epoch + 1) * steps), epochs * steps)
    if schedule.kind == "plateau":
        return np.full(steps, _at(schedule, float(epoch), epochs) * reduction)
    if schedule.kind != "cosine":
        return np.full(steps, _at(schedule, float(epoch), epochs))
    return np.array([_at(schedule, epoch + step / steps, epochs) for step in range(steps)])


def _at(schedule: Schedule, position: float, epochs: int) -> float:
    floor = schedule.floor
    if position < schedule.warmup_epochs:
        return floor + (1 - floor) * position / schedule.warmup_epochs
    if schedule.kind in ("constant", "plateau"):
        return 1.0
    if schedule.kind == "step":
        return float((schedule.factor or 1.0) ** ((position - schedule.warmup_epochs) // (schedule.step_epochs or 1)))
    decay = schedule.decay_epochs or max(epochs - schedule.warmup_epochs, 1)
    done = min((position - schedule.warmup_epochs) / decay, 1.0)
    left = 1 - done if schedule.kind == "linear" else 0.5 * (1 + math.cos(math.pi * done))
    return floor + (1 - floor) * left


def _one_cycle(rising: float, step: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.float64]:
    """torch.optim.lr_scheduler.OneCycleLR with half cosines, without cycling the momentum; the end stays at `END`."""
    top = max(rising * total - 1, 0.0)
    up = _half_cosine(START, 1.0, step / top if top else np.ones(len(step)))
    down = _half_cosine(1.0, END, np.clip((step - top) / max(total - 1 - top, 1e-9), 0.0, 1.0))
    return np.where(step <= top, up, down)


def _half_cosine(start: float, end: float, share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return end + (start - end) / 2 * (1 + np.cos(np.pi * share))

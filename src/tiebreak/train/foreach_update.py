"""The update rules of `optim` for all parameters of one run at once, on a GPU.

A kernel for each tensor and operation takes longer to launch than to run: torch's `_foreach` operations take a list of
tensors. Hyper-parameters are Python numbers, known before the step, so that nothing waits for the device. The numbers
are those of `optim.update` up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tiebreak.study.optimiser import Kind
from tiebreak.train.optim import DECOUPLED, clip_factor
from tiebreak.train.step import State, apply_update

Update = Callable[[int, tuple[Tensor, ...]], None]  # of a step, with its gradient
Numbers = Mapping[str, float]
List = list[Tensor]
each: Any = torch  # its `_foreach` operations have no types


def updates(kind: Kind, state: State, hypers: dict[str, Tensor], changing: dict[str, Tensor]) -> Update:
    """What updates a run's parameters at a step: one by one, and on a GPU all at once."""

    def one_by_one(step: int, gradient: tuple[Tensor, ...]) -> None:
        apply_update(kind, state, gradient, hypers | {name: values[step] for name, values in changing.items()})

    if not next(iter(state.params.values())).is_cuda:
        return one_by_one
    fixed = {name: float(value) for name, value in hypers.items()}
    course = {name: values.tolist() for name, values in changing.items()}

    def at_once(step: int, gradient: tuple[Tensor, ...]) -> None:
        update_all(kind, state, gradient, fixed | {name: values[step] for name, values in course.items()}, hypers)

    return at_once


def update_all(
    kind: Kind, state: State, gradient: Sequence[Tensor], hypers: Numbers, clip: Mapping[str, Tensor]
) -> None:
    """One step of every parameter, in place, and of the averages where the run keeps them.

    `clip` holds clip_norm as a tensor, where gradients are clipped: their norm stays on the device.
    """
    grads, params = list(gradient), list(state.params.values())
    slots = _columns(state)
    if "clip_norm" in clip:
        grads = each._foreach_mul(grads, clip_factor(grads, clip))
    if kind == "sgd-summed":
        each._foreach_add_(slots["sum"], grads)
        grads = slots["sum"]
    if "weight_decay" in hypers and kind in DECOUPLED:
        each._foreach_mul_(params, 1 - hypers["lr"] * hypers["weight_decay"])
    elif "weight_decay" in hypers:
        grads = each._foreach_add(grads, params, alpha=hypers["weight_decay"])
    _descend(kind, params, grads, slots, hypers)
    if state.averages:
        each._foreach_lerp_(list(state.averages.values()), params, 1 - hypers["ema"])


def _columns(state: State) -> dict[str, List]:
    """The slots of all parameters, by the slot's name."""
    names = next(iter(state.slots.values())) if state.slots else {}
    return {name: [slots[name] for slots in state.slots.values()] for name in names}


def _descend(kind: Kind, params: List, grads: List, slots: dict[str, List], hypers: Numbers) -> None:
    rate = hypers["lr"]
    if kind in ("adam", "adamw", "nadam"):
        _running(slots["mean"], grads, hypers.get("beta1", 0.0))
        scale = _scale(slots["square"], grads, hypers, hypers["bias2"])
        if kind == "nadam":
            each._foreach_addcdiv_(params, grads, scale, value=-rate * hypers["gradient_share"])
            each._foreach_addcdiv_(params, slots["mean"], scale, value=-rate * hypers["mean_share"])
        else:
            each._foreach_addcdiv_(params, slots["mean"], scale, value=-rate / hypers["bias1"])
    elif kind == "adagrad":
        each._foreach_addcmul_(slots["square_sum"], grads, grads, value=1.0)
        each._foreach_addcdiv_(params, grads, _rooted(slots["square_sum"], hypers), value=-rate)
    elif kind == "lion":
        direction = each._foreach_lerp(grads, slots["mean"], hypers.get("beta1", 0.0))
        each._foreach_sign_(direction)
        _running(slots["mean"], grads, hypers.get("beta2", 0.0))
        each._foreach_add_(params, direction, alpha=-rate)
    else:
        if kind == "rmsprop":
            grads = each._foreach_div(grads, _scale(slots["square"], grads, hypers, 1.0))
        each._foreach_add_(params, _with_velocity(kind, grads, slots, hypers), alpha=-rate)


def _with_velocity(kind: Kind, grads: List, slots: dict[str, List], hypers: Numbers) -> List:
    if "velocity" not in slots:
        return grads
    momentum = hypers.get("momentum", 0.0)
    each._foreach_mul_(slots["velocity"], momentum)
    each._foreach_add_(slots["velocity"], grads)
    if kind != "sgd-nesterov":
        return slots["velocity"]
    ahead: List = each._foreach_add(grads, slots["velocity"], alpha=momentum)
    return ahead


def _running(means: List, values: List, decay: float) -> None:
    each._foreach_lerp_(means, values, 1 - decay)


def _scale(squares: List, grads: List, hypers: Numbers, bias: float) -> List:
    """sqrt(v / bias) + eps, with v the running mean of g^2."""
    decay = hypers.get("beta2", 0.0)
    each._foreach_mul_(squares, decay)
    each._foreach_addcmul_(squares, grads, grads, value=1 - decay)
    return _rooted(squares, hypers, bias)


def _rooted(squares: List, hypers: Numbers, bias: float = 1.0) -> List:
    found: List = each._foreach_sqrt(squares)
    if bias != 1.0:
        each._foreach_div_(found, bias**0.5)
    if "eps" in hypers:
        each._foreach_add_(found, hypers["eps"])
    return found

"""The update rules of `optim` for all parameters of one run at once, on a GPU.

A kernel for each tensor and operation takes longer to launch than to run: torch's `_foreach` operations take a list of
tensors, and all of Adam is one kernel of torch's. Hyper-parameters are Python numbers, known before the step, so that
nothing waits for the device. The numbers are those of `optim.update` up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tiebreak.study.optimiser import Kind
from tiebreak.train.optim import DECOUPLED, clip_factor
from tiebreak.train.step import State, apply_update

Update = Callable[[int, tuple[Tensor, ...]], None]  # of a step, with its gradient
Numbers = Mapping[str, float]
List = list[Tensor]
# Of parameters, gradients, slots by name, and what changes from step to step: numbers as tensors, `count` from 1.
Traced = Callable[[List, List, dict[str, List], Mapping[str, Tensor]], None]
each: Any = torch  # its `_foreach` operations have no types
FUSED: Mapping[str, Any] = {"adam": each._fused_adam_, "adamw": each._fused_adamw_}
KINDS = (*FUSED, "sgd", "sgd-nesterov")
FIXED = ("weight_decay", "momentum", "beta1", "beta2", "eps")

# torch 2.11 cannot trace the kernels with a rate on the device: it does not know the shapes of what they return.
TRACEABLE = torch._C._dispatch_has_kernel_for_dispatch_key("aten::_fused_adam_.tensor_lr", "Meta")


@dataclass(frozen=True)
class Tensors:
    """A run's tensors as the lists that the operations take; in the order of the parameters."""

    params: List
    slots: dict[str, List]  # by the slot's name
    averages: List

    @classmethod
    def of(cls, state: State) -> Tensors:
        """Those of a state, which stay the same tensors during a pass."""
        names = next(iter(state.slots.values())) if state.slots else {}
        slots = {name: [own[name] for own in state.slots.values()] for name in names}
        return cls(list(state.params.values()), slots, list(state.averages.values()))


def updates(kind: Kind, state: State, hypers: dict[str, Tensor], changing: dict[str, Tensor]) -> Update:
    """What updates a run's parameters at a step: one by one, and on a GPU all at once."""

    def one_by_one(step: int, gradient: tuple[Tensor, ...]) -> None:
        apply_update(kind, state, gradient, hypers | {name: values[step] for name, values in changing.items()})

    if not next(iter(state.params.values())).is_cuda:
        return one_by_one
    own, fixed = Tensors.of(state), {name: float(value) for name, value in hypers.items()}
    course = {name: values.tolist() for name, values in changing.items()}
    steps = len(course["lr"])
    counts = torch.arange(state.steps + 1, state.steps + steps + 1, device=own.params[0].device).float().unbind()

    def at_once(step: int, gradient: tuple[Tensor, ...]) -> None:
        numbers = fixed | {name: values[step] for name, values in course.items()}
        update_all(kind, own, gradient, numbers, hypers, counts[step])

    return at_once


def update_all(
    kind: Kind,
    own: Tensors,
    gradient: Sequence[Tensor],
    hypers: Numbers,
    clip: Mapping[str, Tensor],
    count: Tensor,
) -> None:
    """One step of every parameter, in place, and of the averages where the run keeps them.

    `clip` holds clip_norm as a tensor, where gradients are clipped: their norm stays on the device. `count` is the
    step's number, from 1.
    """
    grads, params, slots = list(gradient), own.params, own.slots
    if "clip_norm" in clip:
        grads = each._foreach_mul(grads, clip_factor(grads, clip))
    if kind in FUSED and len({param.dtype for param in params}) == 1:
        _fused_adam(kind, own, grads, hypers, count)
    else:
        if kind == "sgd-summed":
            each._foreach_add_(slots["sum"], grads)
            grads = slots["sum"]
        if "weight_decay" in hypers and kind in DECOUPLED:
            each._foreach_mul_(params, 1 - hypers["lr"] * hypers["weight_decay"])
        elif "weight_decay" in hypers:
            grads = each._foreach_add(grads, params, alpha=hypers["weight_decay"])
        _descend(kind, params, grads, slots, hypers)
    if own.averages:
        each._foreach_lerp_(own.averages, params, 1 - hypers["ema"])


def _fused_adam(kind: Kind, own: Tensors, grads: List, hypers: Numbers, count: Tensor) -> None:
    """Adam and AdamW in one kernel, torch's own."""
    numbers = {name: hypers.get(name, 0.0) for name in ("lr", "beta1", "beta2", "weight_decay", "eps")}
    means, squares, counts = own.slots["mean"], own.slots["square"], [count] * len(grads)
    FUSED[kind](
        own.params, _laid_out(grads, own.params), means, squares, [], counts, amsgrad=False, maximize=False, **numbers
    )


def traced_update(kind: Kind, hypers: Numbers, *, compiled: bool) -> Traced | None:
    """The update of one run as one operation of a traced step, where torch has a kernel for the rule; else None.

    The compiler must see through it, which torch 2.11 cannot; otherwise it is an operation of ours.
    """
    if kind not in KINDS or (compiled and not TRACEABLE):
        return None
    fixed = [hypers.get(name, 0.0) for name in FIXED]
    call = _update if compiled else update_at_once

    def traced(params: List, grads: List, slots: dict[str, List], changing: Mapping[str, Tensor]) -> None:
        call(params, grads, *_slots(kind, slots), changing["lr"], changing["count"], kind, fixed)

    return traced


def _slots(kind: str, slots: dict[str, List]) -> tuple[List, List]:
    return (slots["mean"], slots["square"]) if kind in FUSED else (slots.get("velocity", []), [])


def _update(
    params: List, grads: List, first: List, second: List, lr: Tensor, count: Tensor, kind: str, fixed: list[float]
) -> None:
    """All parameters in one kernel of torch's."""
    numbers = dict(zip(FIXED, fixed, strict=True))
    momentum, laid, how = numbers.pop("momentum"), _laid_out(grads, params), {"lr": lr, "maximize": False}
    if kind in FUSED:
        FUSED[kind](params, laid, first, second, [], [count] * len(params), amsgrad=False, **how, **numbers)
        return
    how |= {"weight_decay": numbers["weight_decay"], "momentum": momentum, "dampening": 0.0}
    each._fused_sgd_(params, laid, first, nesterov=kind == "sgd-nesterov" and bool(first), is_first_step=False, **how)


@torch.library.custom_op("tiebreak::update_at_once", mutates_args=("params", "first", "second"))
def update_at_once(
    params: List, grads: List, first: List, second: List, lr: Tensor, count: Tensor, kind: str, fixed: list[float]
) -> None:
    """`_update` as one operation of a graph that is not compiled."""
    _update(params, grads, first, second, lr, count, kind, fixed)


def _laid_out(grads: List, params: List) -> List:
    """The gradients with the strides of the parameters, as the fused kernels want them."""
    return [
        grad if grad.stride() == param.stride() else torch.empty_like(param).copy_(grad)
        for grad, param in zip(grads, params, strict=True)
    ]


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

"""Update rules as pure functions of one tensor: the numbers of torch.optim, hyper-parameters as tensors.

p: a parameter of any shape; g: its gradient; slots: the rule's state for it; t: the step count from 1.
A hyper-parameter that is zero is absent from `hypers`, so that a rule computes only what it needs.

`sgd-summed` is SGD that zeroes gradients only once a pass: p - lr (sum of all g of the pass + weight_decay p).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Kind = Literal["sgd", "sgd-summed", "adam", "adamw"]
Slots = dict[str, Tensor]

OF_A_PASS = {"sgd-summed"}  # rules whose slots are set to zero when a pass over the data begins


def empty_slots(kind: Kind, param: Tensor, hypers: Mapping[str, Tensor]) -> Slots:
    """The slots of one parameter before the first step."""
    if kind == "sgd":
        return {"velocity": torch.zeros_like(param)} if "momentum" in hypers else {}
    if kind == "sgd-summed":
        return {"sum": torch.zeros_like(param)}
    return {"mean": torch.zeros_like(param), "square": torch.zeros_like(param)}


def per_step(
    kind: Kind, hypers: Mapping[str, Tensor], factors: npt.NDArray[np.float64], first_step: int
) -> dict[str, Tensor]:
    """What changes from step to step, for S steps [S]: lr, and Adam's bias corrections 1 - beta^t."""
    like = next(iter(hypers.values()))
    changing = {"lr": torch.from_numpy(factors).to(like) * hypers.get("lr", 0.0)}
    if kind in ("adam", "adamw"):
        count = torch.arange(first_step + 1, first_step + len(factors) + 1, dtype=torch.float64)
        for bias, beta in (("bias1", "beta1"), ("bias2", "beta2")):
            decay = float(hypers[beta]) if beta in hypers else 0.0
            changing[bias] = (1 - decay**count).to(like)
    return changing


def update(
    kind: Kind,
    param: Tensor,
    grad: Tensor,
    slots: Slots,
    hypers: Mapping[str, Tensor],
    into: tuple[Tensor, Slots] | None = None,
) -> tuple[Tensor, Slots]:
    """The parameter and its slots after one step; the arguments are not changed.

    `into` (which may be the parameter and the slots themselves) receives the result, which saves a copy. Everything is
    elementwise: hyper-parameters that broadcast against a stack of runs update all of them.
    """
    new, memory = into or (None, {})
    start = param
    if kind == "sgd-summed":
        grad = torch.add(slots["sum"], grad, out=memory.get("sum"))
        slots = {"sum": grad}
    if "weight_decay" in hypers and kind == "adamw":
        start = param * (1 - hypers["lr"] * hypers["weight_decay"])
    elif "weight_decay" in hypers:
        grad = grad + hypers["weight_decay"] * param
    direction, kept = (_adam if kind in ("adam", "adamw") else _sgd)(grad, slots, hypers, memory)
    return torch.addcmul(start, direction, hypers["lr"], value=-1, out=new), kept


def _sgd(grad: Tensor, slots: Slots, hypers: Mapping[str, Tensor], into: Slots) -> tuple[Tensor, Slots]:
    """v with v = momentum v + g."""
    if "velocity" not in slots:
        return grad, slots
    velocity = torch.addcmul(grad, hypers["momentum"], slots["velocity"], out=into.get("velocity"))
    return velocity, {"velocity": velocity}


def _adam(grad: Tensor, slots: Slots, hypers: Mapping[str, Tensor], into: Slots) -> tuple[Tensor, Slots]:
    """(m / bias1) / (sqrt(v / bias2) + eps), with m and v the running means of g and g^2."""
    none = torch.zeros((), dtype=grad.dtype, device=grad.device)  # a decay of zero: the mean is the last value
    mean = torch.lerp(grad, slots["mean"], hypers.get("beta1", none), out=into.get("mean"))
    square = torch.lerp(grad * grad, slots["square"], hypers.get("beta2", none), out=into.get("square"))
    scale = torch.sqrt(square / hypers["bias2"])
    if "eps" in hypers:
        scale = scale + hypers["eps"]
    return mean / (hypers["bias1"] * scale), {"mean": mean, "square": square}

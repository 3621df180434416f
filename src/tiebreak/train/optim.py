"""Update rules as pure functions of one tensor: the numbers of torch.optim, hyper-parameters as tensors.

p a parameter of any shape, g its gradient, slots the rule's memory for it, t the step count from 1. A hyper-parameter
that is zero is absent from `hypers`, so that a rule costs only what it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Kind = Literal["sgd", "adam", "adamw"]
Slots = dict[str, Tensor]


def empty_slots(kind: Kind, param: Tensor, hypers: Mapping[str, Tensor]) -> Slots:
    """The rule's memory of one parameter before the first step."""
    if kind == "sgd":
        return {"velocity": torch.zeros_like(param)} if "momentum" in hypers else {}
    return {"mean": torch.zeros_like(param), "square": torch.zeros_like(param)}


def per_step(
    kind: Kind, hypers: Mapping[str, Tensor], factors: npt.NDArray[np.float64], first_step: int
) -> dict[str, Tensor]:
    """What changes from step to step, for a stretch of S steps [S]: lr, and Adam's bias corrections 1 - beta^t."""
    like = next(iter(hypers.values()))
    changing = {"lr": torch.from_numpy(factors).to(like) * hypers.get("lr", 0.0)}
    if kind != "sgd":
        count = torch.arange(first_step + 1, first_step + len(factors) + 1, dtype=torch.float64)
        for bias, beta in (("bias1", "beta1"), ("bias2", "beta2")):
            decay = float(hypers[beta]) if beta in hypers else 0.0
            changing[bias] = (1 - decay**count).to(like)
    return changing


def update(
    kind: Kind, param: Tensor, grad: Tensor, slots: Slots, hypers: Mapping[str, Tensor], out: Tensor | None = None
) -> tuple[Tensor, Slots]:
    """The parameter and its memory after one step; the arguments are left as they were.

    `out` (which may be `param` itself) receives the new parameter and saves the copy that a loop would make.
    """
    start = param
    if "weight_decay" in hypers and kind == "adamw":
        start = param * (1 - hypers["lr"] * hypers["weight_decay"])
    elif "weight_decay" in hypers:
        grad = grad + hypers["weight_decay"] * param
    direction, slots = _sgd(grad, slots, hypers) if kind == "sgd" else _adam(grad, slots, hypers)
    return torch.addcmul(start, direction, hypers["lr"], value=-1, out=out), slots


def _sgd(grad: Tensor, slots: Slots, hypers: Mapping[str, Tensor]) -> tuple[Tensor, Slots]:
    """v with v = momentum v + g."""
    if "momentum" not in hypers:
        return grad, slots
    velocity = hypers["momentum"] * slots["velocity"] + grad
    return velocity, {"velocity": velocity}


def _adam(grad: Tensor, slots: Slots, hypers: Mapping[str, Tensor]) -> tuple[Tensor, Slots]:
    """(m / bias1) / (sqrt(v / bias2) + eps), with m and v the running means of g and g^2."""
    mean = torch.lerp(grad, slots["mean"], hypers["beta1"]) if "beta1" in hypers else grad
    square = torch.lerp(grad * grad, slots["square"], hypers["beta2"]) if "beta2" in hypers else grad * grad
    scale = torch.sqrt(square / hypers["bias2"])
    if "eps" in hypers:
        scale = scale + hypers["eps"]
    return mean / (hypers["bias1"] * scale), {"mean": mean, "square": square}

"""Update rules as pure functions of one tensor: the numbers of torch.optim, hyper-parameters as tensors.

p: a parameter of any shape; g: its gradient; slots: the rule's state for it; t: the step count from 1.
A hyper-parameter that is zero is absent from `hypers`, so that a rule computes only what it needs.

`sgd-summed` is SGD that zeroes gradients only once a pass: p - lr (sum of all g of the pass + weight_decay p).
`lion` is the rule of Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023); torch has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tiebreak.study.optimiser import Kind

Slots = dict[str, Tensor]
Hypers = Mapping[str, Tensor]

OF_A_PASS = {"sgd-summed"}  # rules whose slots are set to zero when a pass over the data begins
DECOUPLED = {"adamw", "lion"}  # rules whose weight decay shrinks the parameter, not the gradient
BIAS_CORRECTED = {"adam", "adamw", "nadam"}
SLOTS: Mapping[Kind, tuple[str, ...]] = {
    "sgd": (),
    "sgd-nesterov": (),
    "sgd-summed": ("sum",),
    "adam": ("mean", "square"),
    "adamw": ("mean", "square"),
    "nadam": ("mean", "square"),
    "rmsprop": ("square",),
    "adagrad": ("square_sum",),
    "lion": ("mean",),
}
WITH_VELOCITY = {"sgd", "sgd-nesterov", "rmsprop"}  # a further slot where the run has momentum
MOMENTUM_DECAY = 4e-3  # of NAdam, as in torch


def empty_slots(kind: Kind, param: Tensor, hypers: Hypers) -> Slots:
    """The slots of one parameter before the first step."""
    names = SLOTS[kind] + (("velocity",) if kind in WITH_VELOCITY and "momentum" in hypers else ())
    return {name: torch.zeros_like(param) for name in names}


def per_step(kind: Kind, hypers: Hypers, factors: npt.NDArray[np.float64], first_step: int) -> dict[str, Tensor]:
    """What changes from step to step, for S steps [S]: lr, bias corrections, the decay of averaged weights."""
    like = next(iter(hypers.values()))
    changing = {"lr": torch.from_numpy(factors).to(like) * hypers.get("lr", 0.0)}
    if kind in BIAS_CORRECTED:
        count = torch.arange(first_step + 1, first_step + len(factors) + 1, dtype=torch.float64)
        for bias, beta in (("bias1", "beta1"), ("bias2", "beta2")):
            decay = float(hypers[beta]) if beta in hypers else 0.0
            changing[bias] = (1 - decay**count).to(like)
    if kind == "nadam":
        shares = _nadam_shares(float(hypers["beta1"]) if "beta1" in hypers else 0.0, first_step + len(factors))
        changing |= {name: values[first_step:].to(like) for name, values in shares.items()}
    if "ema" in hypers:  # the first average is the first step's parameters, as in torch.optim.swa_utils
        later = torch.arange(first_step, first_step + len(factors), device=like.device) > 0
        changing["ema"] = later * hypers["ema"]
    return changing


def _nadam_shares(beta1: float, steps: int) -> dict[str, Tensor]:
    """The factors of NAdam on g and on its running mean at the steps 1 to `steps`: (1 - mu_t) / (1 - mu_1 … mu_t) and
    mu_{t+1} / (1 - mu_1 … mu_{t+1}), where mu_t = beta1 (1 - 0.96^(0.004 t) / 2)."""
    count = torch.arange(1, steps + 2, dtype=torch.float64)
    mu = beta1 * (1 - 0.5 * 0.96 ** (count * MOMENTUM_DECAY))
    left = 1 - torch.cumprod(mu, dim=0)
    return {"gradient_share": (1 - mu[:-1]) / left[:-1], "mean_share": mu[1:] / left[1:]}


def clip_factor(gradient: Sequence[Tensor], hypers: Hypers) -> Tensor:
    """What all gradients of a run are multiplied with so that their common norm is at most `clip_norm`.

    As torch.nn.utils.clip_grad_norm_: min(1, clip_norm / (norm + 1e-6)). A clip_norm of 0 clips nothing.
    """
    norm = torch.stack([torch.linalg.vector_norm(each) for each in gradient]).square().sum().sqrt()
    factor = (hypers["clip_norm"] / (norm + 1e-6)).clamp(max=1.0)
    return torch.where(hypers["clip_norm"] > 0, factor, torch.ones_like(factor))


def update(
    kind: Kind,
    param: Tensor,
    grad: Tensor,
    slots: Slots,
    hypers: Hypers,
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
    if "weight_decay" in hypers and kind in DECOUPLED:
        start = param * (1 - hypers["lr"] * hypers["weight_decay"])
    elif "weight_decay" in hypers:
        grad = grad + hypers["weight_decay"] * param
    direction, kept = RULES[kind](grad, slots, hypers, memory)
    return torch.addcmul(start, direction, hypers["lr"], value=-1, out=new), kept


def _sgd(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """v with v = momentum v + g."""
    if "velocity" not in slots:
        return grad, slots
    velocity = torch.addcmul(grad, hypers["momentum"], slots["velocity"], out=into.get("velocity"))
    return velocity, {"velocity": velocity}


def _nesterov(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """g + momentum v with v = momentum v + g."""
    velocity, kept = _sgd(grad, slots, hypers, into)
    return (torch.addcmul(grad, hypers["momentum"], velocity) if kept else grad), kept


def _adam(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """(m / bias1) / (sqrt(v / bias2) + eps), with m and v the running means of g and g^2."""
    mean, square = _moments(grad, slots, hypers, into)
    scale = _with_eps(torch.sqrt(square / hypers["bias2"]), hypers)
    return mean / (hypers["bias1"] * scale), {"mean": mean, "square": square}


def _nadam(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """Adam that looks ahead: g and m, each with its share (`_nadam_shares`), over sqrt(v / bias2) + eps."""
    mean, square = _moments(grad, slots, hypers, into)
    scale = _with_eps(torch.sqrt(square / hypers["bias2"]), hypers)
    ahead = hypers["gradient_share"] * grad + hypers["mean_share"] * mean
    return ahead / scale, {"mean": mean, "square": square}


def _rmsprop(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """g / (sqrt(v) + eps), with v the running mean of g^2 (its decay, torch's alpha, is beta2); or its velocity."""
    square = _running("beta2", grad * grad, slots["square"], hypers, into.get("square"))
    direction = grad / _with_eps(torch.sqrt(square), hypers)
    velocity, kept = _sgd(direction, {name: slots[name] for name in slots if name == "velocity"}, hypers, into)
    return velocity, {"square": square, **kept}


def _adagrad(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """g / (sqrt(s) + eps), with s the sum of all g^2."""
    total = torch.addcmul(slots["square_sum"], grad, grad, out=into.get("square_sum"))
    return grad / _with_eps(torch.sqrt(total), hypers), {"square_sum": total}


def _lion(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Slots]:
    """sign(beta1 m + (1 - beta1) g), then m = beta2 m + (1 - beta2) g."""
    direction = torch.sign(_running("beta1", grad, slots["mean"], hypers, None))
    return direction, {"mean": _running("beta2", grad, slots["mean"], hypers, into.get("mean"))}


def _moments(grad: Tensor, slots: Slots, hypers: Hypers, into: Slots) -> tuple[Tensor, Tensor]:
    mean = _running("beta1", grad, slots["mean"], hypers, into.get("mean"))
    return mean, _running("beta2", grad * grad, slots["square"], hypers, into.get("square"))


def _running(decay: str, value: Tensor, before: Tensor, hypers: Hypers, into: Tensor | None) -> Tensor:
    if decay not in hypers:  # a decay of zero: the mean is the last value
        return torch.lerp(value, before, torch.zeros((), dtype=value.dtype, device=value.device), out=into)
    return torch.lerp(value, before, hypers[decay], out=into)


def _with_eps(scale: Tensor, hypers: Hypers) -> Tensor:
    return scale + hypers["eps"] if "eps" in hypers else scale


RULES: Mapping[Kind, Callable[[Tensor, Slots, Hypers, Slots], tuple[Tensor, Slots]]] = {
    "sgd": _sgd,
    "sgd-nesterov": _nesterov,
    "sgd-summed": _sgd,
    "adam": _adam,
    "adamw": _adam,
    "nadam": _nadam,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
    "lion": _lion,
}

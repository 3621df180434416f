from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn, optim
from torch.func import vmap

from tiebreak.study.optimiser import Kind
from tiebreak.train.optim import Slots, clip_factor, empty_slots, per_step, update

STEPS = 200
Peer = Callable[[Iterable[nn.Parameter]], optim.Optimizer]


class PaperLion(optim.Optimizer):
    """Algorithm 2 of Chen et al. (2023), line by line."""

    def __init__(self, params: Iterable[nn.Parameter], **defaults: Any) -> None:
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            (beta1, beta2), rate, decay = group["betas"], group["lr"], group["weight_decay"]
            for param in group["params"]:
                mean = self.state[param].get("mean", torch.zeros_like(param))
                direction = (beta1 * mean + (1 - beta1) * param.grad).sign()
                param.sub_(rate * (direction + decay * param))
                self.state[param]["mean"] = beta2 * mean + (1 - beta2) * param.grad


CASES: dict[str, tuple[Kind, dict[str, float], Peer]] = {
    "sgd": ("sgd", {"lr": 0.1}, lambda p: optim.SGD(p, lr=0.1)),
    "sgd, momentum": (
        "sgd",
        {"lr": 0.1, "momentum": 0.9},
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    ),
    "sgd, weight decay": (
        "sgd",
        {"lr": 0.1, "weight_decay": 0.02},
        lambda p: optim.SGD(p, lr=0.1, weight_decay=0.02),
    ),
    "sgd, both": (
        "sgd",
        {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.02},
        lambda p: optim.SGD(p, lr=0.1, momentum=0.8, weight_decay=0.02),
    ),
    "adam": (
        "adam",
        {"lr": 0.003, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
        lambda p: optim.Adam(p, lr=0.003),
    ),
    "adam, weight decay": (
        "adam",
        {"lr": 0.003, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.02},
        lambda p: optim.Adam(p, lr=0.003, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.02),
    ),
    "adam, no memory of the mean": (
        "adam",
        {"lr": 0.003, "beta2": 0.999, "eps": 1e-8},
        lambda p: optim.Adam(p, lr=0.003, betas=(0.0, 0.999)),
    ),
    "adam, no memory of the square": (
        "adam",
        {"lr": 0.003, "beta1": 0.9, "eps": 1e-8},
        lambda p: optim.Adam(p, lr=0.003, betas=(0.9, 0.0)),
    ),
    "adamw": (
        "adamw",
        {"lr": 0.003, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.02},
        lambda p: optim.AdamW(p, lr=0.003, weight_decay=0.02),
    ),
    "nesterov": (
        "sgd-nesterov",
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.02},
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.02, nesterov=True),
    ),
    "nadam": (
        "nadam",
        {"lr": 0.003, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.02},
        lambda p: optim.NAdam(p, lr=0.003, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.02),
    ),
    "rmsprop": (
        "rmsprop",
        {"lr": 0.003, "beta2": 0.99, "eps": 1e-8},
        lambda p: optim.RMSprop(p, lr=0.003),
    ),
    "rmsprop, momentum and weight decay": (
        "rmsprop",
        {"lr": 0.003, "beta2": 0.9, "eps": 1e-6, "momentum": 0.7, "weight_decay": 0.02},
        lambda p: optim.RMSprop(p, lr=0.003, alpha=0.9, eps=1e-6, momentum=0.7, weight_decay=0.02),
    ),
    "adagrad": (
        "adagrad",
        {"lr": 0.01, "eps": 1e-10, "weight_decay": 0.02},
        lambda p: optim.Adagrad(p, lr=0.01, weight_decay=0.02),
    ),
    "lion": (
        "lion",
        {"lr": 0.003, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.02},
        lambda p: PaperLion(p, lr=0.003, betas=(0.9, 0.99), weight_decay=0.02),
    ),
    "adamw, no weight decay": (
        "adamw",
        {"lr": 0.003, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
        lambda p: optim.AdamW(p, lr=0.003, weight_decay=0.0),
    ),
}


def small_network() -> nn.Module:
    """Of few numbers, so that torch keeps to one thread."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 20)).double()


def tensors(values: dict[str, float]) -> dict[str, Tensor]:
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}


def gradients(params: list[Tensor]) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return [
        [torch.randn(param.shape, dtype=param.dtype, generator=generator) for param in params] for _ in range(STEPS)
    ]


@pytest.mark.parametrize("varying", [False, True], ids=["constant lr", "varying lr"])
@pytest.mark.parametrize("case", CASES)
def test_two_hundred_steps_are_those_of_torch(case: str, varying: bool) -> None:
    kind, values, peer = CASES[case]
    network, hypers = small_network(), tensors(values)
    params = [param.detach().clone() for param in network.parameters()]
    slots = [empty_slots(kind, param, hypers) for param in params]
    factors = np.linspace(0.01, 1, STEPS) if varying else np.ones(STEPS)
    changing = per_step(kind, hypers, factors, 0)
    theirs = peer(network.parameters())
    for step, grads in enumerate(gradients(params)):
        now = hypers | {name: series[step] for name, series in changing.items()}
        results = [update(kind, *each, now) for each in zip(params, grads, slots, strict=True)]
        params, slots = [new for new, _ in results], [slot for _, slot in results]
        for group in theirs.param_groups:
            group["lr"] = values["lr"] * factors[step]
        for param, grad in zip(network.parameters(), grads, strict=True):
            param.grad = grad
        theirs.step()
    for ours, param in zip(params, network.parameters(), strict=True):
        near = 1e-8 if kind == "nadam" else 1e-12  # torch keeps a product of NAdam in float32
        assert torch.linalg.vector_norm(ours - param) <= near * torch.linalg.vector_norm(param)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_an_update_leaves_its_arguments_as_they_were(kind: Kind) -> None:
    hypers = tensors({"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8})
    param, grad = torch.linspace(-1, 1, 5).double(), torch.linspace(1, 2, 5).double()
    slots = {name: torch.full_like(param, 0.5) for name in empty_slots(kind, param, hypers)}
    hypers |= {name: series[0] for name, series in per_step(kind, hypers, np.ones(1), 3).items()}
    given = [param.clone(), grad.clone(), *(slot.clone() for slot in slots.values())]
    new, _ = update(kind, param, grad, slots, hypers)
    assert not torch.equal(new, param)
    assert all(torch.equal(*pair) for pair in zip(given, [param, grad, *slots.values()], strict=True))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_hyper_parameters_may_differ_from_run_to_run_under_vmap(kind: Kind) -> None:
    fixed = ("lr", "momentum", "weight_decay", "beta1", "beta2", "eps")
    names = (*fixed, "bias1", "bias2", "gradient_share", "mean_share")
    generator = torch.Generator().manual_seed(4)
    hypers = {name: 0.1 + 0.8 * torch.rand(3, dtype=torch.float64, generator=generator) for name in names}
    param, grad = torch.randn(2, 3, 6, dtype=torch.float64, generator=generator)
    slots: Slots = {name: torch.rand_like(param) + 0.1 for name in empty_slots(kind, param, hypers)}

    def one(param: Tensor, grad: Tensor, slots: Slots, hypers: dict[str, Tensor]) -> tuple[Tensor, Slots]:
        return update(kind, param, grad, slots, hypers)

    fused, memory = vmap(one)(param, grad, slots, hypers)
    for run in range(3):
        own = ({name: slot[run] for name, slot in slots.items()}, {name: value[run] for name, value in hypers.items()})
        alone, kept = update(kind, param[run], grad[run], *own)
        torch.testing.assert_close(fused[run], alone, rtol=1e-14, atol=0)
        for name, slot in kept.items():
            torch.testing.assert_close(memory[name][run], slot, rtol=1e-14, atol=0)


def test_a_stretch_in_the_middle_has_the_numbers_of_the_whole() -> None:
    hypers = tensors({"lr": 0.1, "beta1": 0.9, "beta2": 0.999})
    whole = per_step("adam", hypers, np.ones(10), 0)
    rest = per_step("adam", hypers, np.ones(4), 6)
    assert all(torch.equal(whole[name][6:], rest[name]) for name in ("lr", "bias1", "bias2"))
    assert float(whole["bias2"][0]) == pytest.approx(0.001, rel=1e-12)


def test_a_learning_rate_of_zero_trains_nothing() -> None:
    hypers = tensors({"beta1": 0.9, "beta2": 0.999, "eps": 1e-8})  # a hyper-parameter that is zero is absent
    param = torch.linspace(-1, 1, 5).double()
    hypers |= {name: series[0] for name, series in per_step("adam", hypers, np.ones(1), 0).items()}
    new, _ = update("adam", param, torch.ones_like(param), empty_slots("adam", param, hypers), hypers)
    assert torch.equal(new, param)


@pytest.mark.parametrize("limit", [0.5, 3.0, 1e6, 0.0])
def test_clipping_is_that_of_torch(limit: float) -> None:
    network = small_network()
    grads = gradients(list(network.parameters()))[0]
    factor = clip_factor(grads, tensors({"clip_norm": limit}))
    for param, grad in zip(network.parameters(), grads, strict=True):
        param.grad = grad.clone()
    if limit:  # torch would set everything to zero; here 0 is no clipping
        nn.utils.clip_grad_norm_(network.parameters(), limit)
    for param, grad in zip(network.parameters(), grads, strict=True):
        torch.testing.assert_close(grad * factor, param.grad, rtol=1e-12, atol=0)

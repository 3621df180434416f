from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tiebreak.models.design import Images
from tiebreak.models.fusibility import explain_error, fusion_limits, fusion_obstacle

SHAPE = Images(channels=1, height=28, width=28, classes=3)


class Own(nn.Module):
    """A user's design: a linear layer, and what a subclass does with its output."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(28 * 28, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.then(self.out(images.flatten(1)))

    def then(self, logits: Tensor) -> Tensor:
        return logits


class Decides(Own):
    def then(self, logits: Tensor) -> Tensor:
        return logits if logits.sum() > 0 else -logits


class Reads(Own):
    def then(self, logits: Tensor) -> Tensor:
        return logits * logits.sum().item()


class Draws(Own):
    def then(self, logits: Tensor) -> Tensor:
        return logits + torch.rand_like(logits)


class Fills(Own):
    def then(self, logits: Tensor) -> Tensor:
        found = torch.zeros(*logits.shape)
        found[:, 0] = logits[:, 0]
        return found


class FillsOwn(Own):
    def then(self, logits: Tensor) -> Tensor:
        found = torch.zeros_like(logits)
        found[:, 0] = logits[:, 0]
        return found


class Asks(Own):
    def then(self, logits: Tensor) -> Tensor:
        return logits + logits.detach().requires_grad_()


class Checkpoints(Own):
    def then(self, logits: Tensor) -> Tensor:
        kept: Tensor = checkpoint(torch.tanh, logits, use_reentrant=False)
        return kept


class Keeps(Own):
    """Once it was called with a gradient it cannot be copied."""

    def then(self, logits: Tensor) -> Tensor:
        self.last = logits
        return logits


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> Tensor:
        return above


class HalfReady(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sign()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        return

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> Tensor:
        return above


class Ready(HalfReady):
    generate_vmap_rule = True


class Signs(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.function.apply(x)
        return found


class Halves(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.div(x.detach(), 2, out=torch.empty_like(x)) + x


class Calls(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Raises(Own):
    def then(self, logits: Tensor) -> Tensor:
        raise ValueError("only\non Sundays. " + "And much more. " * 50)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(28, 5, batch_first=True)
        self.out = nn.Linear(5, 3)

    def forward(self, images: Tensor) -> Tensor:
        hidden: Tensor = self.lstm(images[:, 0])[0]
        logits: Tensor = self.out(hidden[:, -1])
        return logits


def test_what_torch_can_map_over_runs_can_be_fused() -> None:
    assert fusion_obstacle(Own, SHAPE) == ""
    assert fusion_obstacle(FillsOwn, SHAPE) == ""
    assert fusion_obstacle(Keeps, SHAPE) == ""
    assert fusion_obstacle(lambda: then(Signs(Ready)), SHAPE) == ""


def then(layer: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 3), layer)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (Decides, "it decides by values of a tensor"),
        (Reads, "it decides by values of a tensor"),
        (Draws, "it draws random numbers from torch's generator"),
        (lambda: then(nn.RReLU()), "RuntimeError: "),
        (Fills, "it changes in place"),
        (Asks, "it asks for a gradient"),
        (Checkpoints, "it changes what is kept"),
        (Raises, "ValueError: only on Sundays"),
        (Recurrent, "it uses nn.LSTM"),
    ],
    ids=["decides", "reads", "draws", "rrelu", "fills", "asks", "checkpoints", "raises", "recurrent"],
)
def test_what_cannot_be_fused_is_told_in_one_line(build: Callable[[], nn.Module], reason: str) -> None:
    found = fusion_obstacle(build, SHAPE)
    assert found.startswith(reason)
    assert "\n" not in found
    assert len(found) < 260


@pytest.mark.parametrize(
    ("layer", "parts"),
    [
        (lambda: Signs(Sign), ["setup_context", "generate_vmap_rule = True", "(layer '2', Signs)"]),
        (lambda: Signs(HalfReady), ["setup_context", "generate_vmap_rule = True", "(layer '2', Signs)"]),
        (Halves, ["it uses aten::div.out", "(layer '2', Halves)"]),
        (lambda: Calls(lambda x: x[x > 0].sum() * x), ["as many numbers as values decide", "torch.where"]),
        (lambda: Calls(lambda x: x * len(torch.unique(x))), ["as many numbers as values decide"]),
        (lambda: Calls(lambda x: x if torch.allclose(x, x) else -x), ["it decides by values"]),
        (lambda: Calls(lambda x: torch.zeros(x.shape).add_(x)), ["it changes in place", "new_zeros"]),
        (lambda: Calls(lambda x: x * x.detach().numpy().shape[0]), ["leaves torch", "numpy"]),
        (lambda: Calls(lambda x: torch.cond(x.sum() > 0, lambda y: y, lambda y: -y, (x,))), ["torch.cond"]),
        (lambda: Calls(lambda x: (torch.eye(3).to_sparse() @ x.T).T), ["sparse tensor"]),
    ],
    ids=[
        *("function", "function without a rule", "out", "mask", "unique", "allclose", "shared", "numpy", "cond"),
        "sparse",
    ],
)
def test_what_torch_cannot_map_is_told_in_plain_words_with_its_layer(
    layer: Callable[[], nn.Module], parts: list[str]
) -> None:
    found = fusion_obstacle(lambda: then(layer()), SHAPE)
    assert "Error" not in found
    assert all(part in found for part in parts)
    assert re.search(r"\(layer '2', \w+\), at test_fusibility\.py:\d+$", found)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("vmap: it is so. And more."), "RuntimeError: it is so"),
        (RuntimeError("it is so."), "RuntimeError: it is so"),
        (AssertionError(), "AssertionError"),
        (
            RuntimeError("Batching rule not implemented for aten::trace. We could not generate a fallback."),
            "it uses aten::trace, which torch has no form of for many runs",
        ),
    ],
)
def test_a_reason_ends_without_a_full_stop(error: Exception, reason: str) -> None:
    assert explain_error(error) == reason


def test_asking_trains_nothing_and_warns_of_nothing() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    draws = Draws()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusion_obstacle(lambda: network, SHAPE)
        fusion_obstacle(lambda: draws, SHAPE)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())
    assert torch.equal(state, torch.get_rng_state())


class Inside(nn.Module):
    """The layer that cannot be fused is two levels down."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleDict({"first": Own(), "second": Decides()})

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.body["first"](images) + self.body["second"](images)
        return logits


class Slow(Own):
    """An operation of the last layer has no rule for many runs."""

    def __init__(self) -> None:
        super().__init__()
        self.sorts = Sorts()

    def then(self, logits: Tensor) -> Tensor:
        found: Tensor = self.sorts(logits)
        return found


class Sorts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.histc(x.detach(), 3)


def test_the_layer_that_cannot_be_fused_is_named() -> None:
    assert "'body.second', Decides" in fusion_obstacle(Inside, SHAPE)


def test_an_operation_that_is_done_run_by_run_is_named_with_its_layer() -> None:
    obstacle, slow = fusion_limits(Slow, SHAPE)
    assert obstacle == ""
    assert "aten::histc" in slow
    assert "'sorts', Sorts" in slow

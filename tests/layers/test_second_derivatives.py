"""Networks that take a gradient in `forward`: the forms of layers for a GPU, which have no second one, step aside."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from tiebreak.layers import recurrent_scan
from tiebreak.layers.batchnorm import swap_batchnorm
from tiebreak.layers.buffer_updates import take_buffer_updates
from tiebreak.layers.product_conv import has_products, use_products
from tiebreak.layers.rnn import Rnn, use_plain_cells
from tiebreak.layers.stacked_conv import stack_convolutions

RUNS, ROWS = 3, 5


class Last(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Rnn(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.layer(x.view(-1, 4, 2))[0]
        return states[:, -1]


class Sloped(nn.Module):
    """Adds the squared slope of its output, as a gradient penalty does."""

    def __init__(self, inner: nn.Module, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(inner, nn.Tanh(), nn.Flatten(), nn.Linear(width, 3))

    def forward(self, x: Tensor) -> Tensor:
        slope: Tensor = grad(lambda y: self.inner(y).logsumexp(-1).sum())(x)
        return self.inner(x) + slope.square().sum(1, keepdim=True)  # type: ignore[no-any-return]


def batch_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6))


def as_products(network: nn.Module) -> None:
    use_products(network, 64)


def stacked(network: nn.Module) -> None:
    stack_convolutions(network)


CASES: dict[str, tuple[Callable[[], nn.Module], int, Callable[[nn.Module], None]]] = {
    "batch norm in one pass": (batch_norm, 6, as_products),
    "convolution as products": (lambda: nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 4, 3)), 24, as_products),
    "stacked convolutions": (lambda: nn.Sequential(nn.Unflatten(1, (1, 2, 4)), nn.Conv2d(1, 4, 2)), 12, stacked),
    "recurrent layer as one op": (Last, 4, lambda network: use_plain_cells(network, True)),
}


def gradients(network: nn.Module) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(RUNS, ROWS, 8, generator=generator, dtype=torch.float64)
    buffers = {name: values for name, values in network.named_buffers() if name.endswith(".weights")}

    def loss(params: dict[str, Tensor], x: Tensor) -> Tensor:
        rows = {name: torch.ones(ROWS, dtype=torch.float64) for name in buffers}
        value: Tensor = functional_call(network, {**params, **rows}, (x,)).sin().sum()
        take_buffer_updates(network)
        return value

    params = {
        name: torch.stack([values.detach() * (1 + run / 10) for run in range(RUNS)])
        for name, values in network.named_parameters()
    }
    return vmap(grad(loss))(params, x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES)
def test_a_gradient_of_a_gradient_is_that_of_the_plain_layer(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, width, change = CASES[case]
    torch.manual_seed(0)
    network = Sloped(build(), width).double().train()
    swap_batchnorm(network)
    wanted = gradients(copy.deepcopy(network))
    change(network)
    monkeypatch.setattr(recurrent_scan, "FORCED", "kernel")
    found = gradients(network)
    for name, values in wanted.items():
        torch.testing.assert_close(found[name], values)
    if "as products" in case:
        assert has_products(network)

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tiebreak.cost import measure
from tiebreak.models.design import Images

SHAPE = Images(channels=1, height=4, width=4, classes=3)


def test_a_linear_layer_is_counted_exactly() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    assert measure.parameters(network) == 16 * 3 + 3
    assert measure.forward_flops(network, SHAPE) == 2 * 16 * 3


def test_what_cannot_be_counted_is_unknown_and_not_zero() -> None:
    assert measure.forward_flops(nn.Sequential(nn.Flatten(), nn.ReLU()), SHAPE) is None


def test_frozen_parameters_are_not_counted() -> None:
    network = nn.Linear(16, 3)
    network.bias.requires_grad_(False)
    assert measure.parameters(network) == 48


def test_activations_are_what_the_backward_pass_needs() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
    inputs, hidden = 4 * 5 * 16, 4 * 5 * 32  # bytes of 5 examples; the output is not kept
    assert measure.activation_bytes(network, SHAPE, 5) == inputs + hidden + hidden  # the largest has a gradient too
    assert measure.activation_bytes(network, SHAPE, 10) == 2 * measure.activation_bytes(network, SHAPE, 5)
    assert network.training


def test_in_float64_all_takes_twice_as_much() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
    single = measure.activation_bytes(network, SHAPE, 5), measure.number_bytes(network)
    flops = measure.forward_flops(network, SHAPE)
    network.double()
    assert (measure.activation_bytes(network, SHAPE, 5), measure.number_bytes(network)) == tuple(2 * x for x in single)
    assert measure.forward_flops(network, SHAPE) == flops
    assert measure.activation_bytes(Steep(functional=True).double(), SHAPE, 5) > 0


def test_counting_activations_leaves_the_network_as_it_was() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).eval()
    measure.activation_bytes(network, SHAPE, 2)
    assert not network.training
    assert all(parameter.grad is None for parameter in network.parameters())


def test_a_network_whose_output_is_a_view_of_a_parameter_is_counted() -> None:
    class Bias(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(3))

        def forward(self, images: Tensor) -> Tensor:
            return self.bias.expand(len(images), -1)

    network = Bias()
    assert measure.forward_flops(network, SHAPE) is None
    assert network.bias.requires_grad


def test_counting_leaves_the_mode_as_it_was_when_the_network_raises() -> None:
    network = nn.Linear(3, 3)
    with pytest.raises(RuntimeError):
        measure.forward_flops(network, SHAPE)
    assert network.training


def test_peak_memory_is_what_is_held_at_once() -> None:
    q, size = torch.randn(100, 8), 4 * 100 * 100
    with torch.no_grad():
        assert measure.peak_bytes(lambda: (q @ q.T).softmax(-1) @ q) == 2 * size  # scores and weights
        assert measure.peak_bytes(lambda: [q @ q.T for _ in range(3)]) == 3 * size
        assert measure.peak_bytes(lambda: [(q @ q.T).sum() for _ in range(3)]) == size + 3 * 4
        assert measure.peak_bytes(lambda: q.T.view(-1, 4, 100)[0].mul_(1)) == 0, "views and what is done in place"


@pytest.mark.gpu
def test_peak_memory_on_a_gpu() -> None:
    q, size = torch.randn(1024, 8, device="cuda"), 4 * 1024 * 1024
    with torch.no_grad():
        assert 2 * size <= measure.peak_bytes(lambda: (q @ q.T).softmax(-1) @ q, "cuda") < 4 * size


@pytest.mark.parametrize(
    ("each", "least", "calls"),
    [(0.001, 3, measure.MOST_TIMES), (0.3, 2, 2), (0.125, 3, 4), (2.0, 3, 3)],
    ids=["very short", "long", "until the sum is long enough", "at least so often"],
)
def test_a_call_is_repeated_until_its_median_can_be_trusted(
    each: float, least: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, called = 0.0, 0

    def call() -> None:
        nonlocal now, called
        now, called = now + each, called + 1

    monkeypatch.setattr("tiebreak.cost.measure.time.perf_counter", lambda: now)
    assert measure.seconds(call, warm_up=2, least=least) == pytest.approx(each)
    assert called == 2 + calls


class Steep(nn.Module):
    """A network that takes a gradient in its forward pass, as physics-informed ones and gradient penalties do."""

    def __init__(self, functional: bool) -> None:
        super().__init__()
        self.inner, self.functional = nn.Linear(16, 3), functional

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        if self.functional:
            slope = torch.func.grad(lambda x: self.inner(x).logsumexp(dim=-1).sum())(flat)
        else:
            with torch.enable_grad():
                flat = flat.detach().requires_grad_()
                (slope,) = torch.autograd.grad(self.inner(flat).logsumexp(dim=-1).sum(), flat, create_graph=True)
        logits: Tensor = self.inner(flat) + slope.mean(dim=1, keepdim=True)
        return logits


@pytest.mark.parametrize("functional", [False, True])
def test_a_network_that_takes_a_gradient_in_its_forward_pass_is_measured(functional: bool) -> None:
    network = Steep(functional)
    images = 4 * 5 * 16
    assert images < measure.activation_bytes(network, SHAPE, 5) < 100 * images
    assert measure.forward_flops(network, SHAPE) != 0

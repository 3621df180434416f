from __future__ import annotations

from torch import nn

from tiebreak.cost import measure
from tiebreak.models.interfaces import Images

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


def test_counting_activations_leaves_the_network_as_it_was() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).eval()
    measure.activation_bytes(network, SHAPE, 2)
    assert not network.training
    assert all(parameter.grad is None for parameter in network.parameters())


def test_a_step_takes_time() -> None:
    assert measure.step_seconds(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), SHAPE, 4) > 0

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


def test_a_step_takes_time() -> None:
    assert measure.step_seconds(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), SHAPE, 4) > 0

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from support.families import FAMILIES
from tiebreak.models.design import Shape
from tiebreak.models.input_sensitivity import ignores_input


class Constant(nn.Module):
    """Gives the same logits whatever it is called with."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.bias.expand(self.shape.output(2))


class Sum(Constant):
    """Gives the sum of all its inputs."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return super().forward() + sum(each.float().sum() for each in inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_network_is_found_in_every_family(family: str) -> None:
    shape = FAMILIES[family].small
    assert ignores_input(Constant(shape), shape)
    assert not ignores_input(Sum(shape), shape)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_stays_as_it_was_and_nothing_is_drawn(training: bool) -> None:
    shape = FAMILIES["classifier"].small
    network = Constant(shape).train(training)
    before = torch.get_rng_state()
    ignores_input(network, shape)
    assert network.training is training
    assert torch.equal(before, torch.get_rng_state())

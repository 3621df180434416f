"""Whether a network uses its input. One that does not still trains, and gives the most frequent answers."""

from __future__ import annotations

import torch
from torch import nn

from tiebreak.models.design import Graph, Shape

ROWS = 2


def ignores_input(network: nn.Module, shape: Shape) -> bool:
    """Whether the outputs for two different inputs (pixels, symbols, sound, node features) are equal bit for bit."""
    inputs = list(shape.inputs(ROWS))
    place = 2 if isinstance(shape, Graph) else 0  # of a graph, the values of the features
    one = inputs[place]
    if one.is_floating_point():
        other = torch.rand(one.shape, generator=torch.Generator().manual_seed(0))
    else:
        other = (torch.arange(one.numel()) % 2).reshape(one.shape)  # symbols that every vocabulary has
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            outputs = [network(*inputs[:place], each, *inputs[place + 1 :]) for each in (one, other)]
    finally:
        network.train(was_training)
    return bool(torch.equal(outputs[0], outputs[1]))

from __future__ import annotations

import pytest
import torch

from tiebreak import catalog
from tiebreak.cost import measure
from tiebreak.models.design import Images
from tiebreak.models.mlp import MATCHES, Mlp


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize(
    "shape",
    [
        Images(channels=1, height=28, width=28, classes=10),
        Images(channels=3, height=32, width=32, classes=100),
        Images(channels=1, height=28, width=28, classes=2),
    ],
)
def test_it_is_as_large_as_the_network_it_is_compared_with(match: str, shape: Images) -> None:
    target = measure.parameters(catalog.DESIGNS[match].network(shape, {}, 0))
    own = measure.parameters(catalog.DESIGNS["mlp"].network(shape, {"match": match}, 0))
    one_unit = shape.channels * shape.height * shape.width + 121
    assert abs(own - target) <= one_unit / 2


def test_neighbours_mean_nothing_to_it() -> None:
    """Shuffling the pixels and the columns of the first layer alike changes nothing."""
    shape = Images(channels=1, height=12, width=12, classes=3)
    network = Mlp(shape, match="cnn-pool").double().eval()
    images = torch.rand(6, 1, 12, 12, dtype=torch.float64)
    before = network(images)
    order = torch.randperm(144)
    network.hidden1.weight.data = network.hidden1.weight.data[:, order]
    torch.testing.assert_close(network(images.flatten(1)[:, order].view(6, 1, 12, 12)), before)

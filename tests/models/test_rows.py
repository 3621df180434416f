from __future__ import annotations

import pytest
import torch

from tiebreak.models.design import Images
from tiebreak.models.rows import AttentionRows

SHAPE = Images(channels=1, height=28, width=28, classes=10)


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", ["softmax", "taylor"])
def test_heads_and_kind_change_no_parameter_count(heads: int, kind: str) -> None:
    network = AttentionRows(SHAPE, heads=heads, kind=kind)
    assert sum(parameter.numel() for parameter in network.parameters()) == 25_546


def test_heads_and_kind_change_the_function() -> None:
    torch.manual_seed(0)
    first = AttentionRows(SHAPE, heads=4, kind="softmax").double()
    images = torch.rand(3, 1, 28, 28, dtype=torch.float64)
    for heads, kind in ((1, "softmax"), (4, "taylor")):
        other = AttentionRows(SHAPE, heads=heads, kind=kind).double()
        other.load_state_dict(first.state_dict())
        assert (first(images) - other(images)).abs().max() > 1e-9


def test_the_order_of_rows_matters() -> None:
    torch.manual_seed(0)
    network = AttentionRows(SHAPE, heads=2, kind="softmax")
    images = torch.rand(2, 1, 28, 28)
    assert not torch.allclose(network(images), network(images.flip(2)), atol=1e-6)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap

from tiebreak.train.fused.free_views import free_views
from tiebreak.train.fused.program import Traced
from tiebreak.train.fused.trace import trace

RUNS = 3


@pytest.mark.parametrize("activation", [F.elu, F.relu6, F.hardswish, F.hardsigmoid, F.softplus, F.selu])
def test_activations_after_convolutions_are_fused(activation: Callable[[Tensor], Tensor]) -> None:
    """Torch predicts another layout of their gradients than their kernels have."""

    def loss(first: Tensor, second: Tensor, images: Tensor) -> Tensor:
        hidden = activation(F.conv2d(images, first, padding=1))
        return activation(F.conv2d(hidden, second, stride=2)).mean((2, 3)).square().sum()

    def gradients(state: Any, shared: Any, row: Any) -> Any:
        return vmap(grad(loss, argnums=(0, 1)))(state["first"], state["second"], row["images"])

    draw = torch.Generator().manual_seed(0)
    first, second = (torch.randn(RUNS, 4, width, 3, 3, generator=draw, dtype=torch.float64) for width in (1, 4))
    images = torch.randn(RUNS, 5, 1, 8, 8, generator=draw, dtype=torch.float64)
    state, row = {"first": first, "second": second}, {"images": images}
    found = Traced(gradients, state, {}, row).call(row)
    for one, other in zip(found, gradients(state, {}, row), strict=True):
        torch.testing.assert_close(one, other)


def test_views_of_what_is_changed_stay_views() -> None:
    def function(state: Any, shared: Any, row: Any) -> Any:
        own = row["x"] * 2
        own.view(12)[:5].zero_()
        state["sum"].view(12).add_(row["x"].view(12))
        return own, (row["x"] + 1).view(2, 6)

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    traced = trace(function, {"sum": torch.zeros(3, 4)}, {}, {"x": x})
    before = [node for node in traced.graph.graph.nodes if node.target is torch.ops.aten.view.default]
    free_views(traced.graph)
    kept = [node for node in traced.graph.graph.nodes if node.target is torch.ops.aten.view.default]
    assert (len(before), len(kept)) == (4, 2)
    total = torch.zeros(3, 4)
    own, shifted = traced([total, x])
    expected = torch.zeros(3, 4)
    wanted = function({"sum": expected}, {}, {"x": x})
    assert torch.equal(total, expected)
    assert torch.equal(own, wanted[0])
    assert torch.equal(shifted, wanted[1])

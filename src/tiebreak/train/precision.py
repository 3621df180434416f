"""The precision that a run computes in: float32 (None), float64, or bfloat16 for the network's own products.

With bfloat16 weights, gradients and updates stay float32; inside the network, torch.autocast chooses which operations
are rounded. Logits are float32 again, so that the loss and the metrics are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tiebreak.study.base import RunPrecision
from tiebreak.tasks.interface import Network


def callable_in(network: nn.Module, precision: RunPrecision | None) -> Network:
    """What the task calls: the network, in this precision."""
    if precision != "bfloat16":
        return network

    def call(*inputs: Any) -> Tensor:
        device = next(network.parameters()).device.type
        with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False):
            logits: Tensor = network(*inputs)
        return logits.float()

    return call


def in_dtype(values: Tensor, precision: RunPrecision | None) -> Tensor:
    """A tensor of the data as runs of this precision get it; whole numbers stay what they are."""
    return values.double() if precision == "float64" and values.is_floating_point() else values

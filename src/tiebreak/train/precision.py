"""The precision that a run computes in: float32 (None), float64, or bfloat16 for the network's own products.

With bfloat16 weights, statistics, gradients and updates stay float32; inside the network, torch.autocast chooses which
operations are rounded. What the network returns is float32 again, so that the loss and the metrics are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from tiebreak.results.record import Precision
from tiebreak.study.base import RunPrecision
from tiebreak.tasks.interface import Network

WIDE = {
    *(F.softmax, F.log_softmax, F.layer_norm, F.group_norm),
    *(torch.softmax, torch.log_softmax, torch.layer_norm, torch.group_norm, Tensor.softmax, Tensor.log_softmax),
}
MIXED = "bfloat16 for the network's products (autocast), float32 otherwise"  # of a run's record


def of_run(stated: RunPrecision | None, option: Precision) -> RunPrecision | None:
    """The precision of a run from what its study states and the option of the command."""
    return "bfloat16" if option == "bf16" and stated is None else stated


class _WideOperations(TorchFunctionMode):
    """Autocast's rules for a GPU, softmax and normalisation in float32, where autocast does not see to it.

    On a CPU it leaves them in bfloat16; under vmap it widens them below the gradient, which then meets two types.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in WIDE:
            args = pytree.tree_map_only(Tensor, _widened, args)
        return func(*args, **(kwargs or {}))


class Autocast:
    """A network whose methods compute in bfloat16 and return float32."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network

    def __call__(self, *inputs: Any) -> Any:
        """The forward pass."""
        return self._rounded(self._network, *inputs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._network, name)
        return (lambda *inputs: self._rounded(found, *inputs)) if callable(found) else found

    def _rounded(self, function: Callable[..., Any], *inputs: Any) -> Any:
        device = next(self._network.parameters()).device.type
        mapped = torch._C._functorch.peek_interpreter_stack() is not None
        wide = _WideOperations() if device == "cpu" or mapped else nullcontext()
        with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False), wide:
            found = function(*inputs)
        return pytree.tree_map_only(Tensor, _widened, found)


def _widened(values: Tensor) -> Tensor:
    return values.float() if values.dtype == torch.bfloat16 else values


def callable_in(network: nn.Module, precision: RunPrecision | None) -> Network:
    """What the task calls: the network, in this precision."""
    return Autocast(network) if precision == "bfloat16" else network


def in_dtype(values: Tensor, precision: RunPrecision | None) -> Tensor:
    """A tensor of the data as runs of this precision get it; whole numbers stay what they are."""
    return values.double() if precision == "float64" and values.is_floating_point() else values

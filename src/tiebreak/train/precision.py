"""The precision that a run computes in: float32 (None), float64, or bfloat16 for the network's own products.

With bfloat16 weights, statistics, gradients and updates stay float32; inside the network, torch.autocast chooses which
operations are rounded. What the network returns is float32 again, so that the loss and the metrics are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from tiebreak.results.record import Precision
from tiebreak.study.base import RunPrecision
from tiebreak.tasks.interface import Network

# What autocast computes in float32 on a GPU, by the names of torch, torch.nn.functional and torch.Tensor; and what it
# computes in the widest type of its operands.
WIDE_NAMES = (
    *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh"),
    *("tan", "pow", "__pow__", "__rpow__", "softplus", "softmax", "log_softmax", "softmin", "logsumexp", "sum", "prod"),
    *("cumsum", "cumprod", "norm", "vector_norm", "matrix_norm", "dist", "pdist", "cdist", "renorm", "layer_norm"),
    *("group_norm", "instance_norm", "rms_norm", "cosine_similarity", "interpolate", "upsample", "kl_div", "l1_loss"),
    *("smooth_l1_loss", "huber_loss", "mse_loss", "nll_loss", "cross_entropy", "binary_cross_entropy_with_logits"),
)
WIDEST_NAMES = (
    *("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sample", "index_put", "scatter_add"),
    *("tensordot", "inner"),
)
MIXED = "bfloat16 for the network's products (autocast), float32 otherwise"  # of a run's record


def of_run(stated: RunPrecision | None, option: Precision) -> RunPrecision | None:
    """The precision of a run from what its study states and the option of the command."""
    return "bfloat16" if option == "bf16" and stated is None else stated


def _named(names: Iterable[str]) -> frozenset[Any]:
    places = (torch, F, Tensor, torch.special, torch.linalg)
    return frozenset(getattr(place, name) for name in names for place in places if hasattr(place, name))


ROUNDED = _named(("mv", "addmv", "addr", "multi_dot", "chain_matmul"))  # products that are not rounded on a CPU
WIDE = _named(WIDE_NAMES)
WIDEST = _named(WIDEST_NAMES)


class _WideOperations(TorchFunctionMode):
    """Autocast's rules for a GPU, as softmax, sums and normalisation in float32, where autocast does not see to it.

    On a CPU it leaves them in bfloat16; under vmap it widens them below the gradient, which then meets two types.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if given.get("out") is not None:  # of the caller's type
            return func(*args, **given)
        if func in WIDEST and _has_float32((args, given)):
            args, given = pytree.tree_map_only(Tensor, _widened, (args, given))
            with torch.autocast(_device(args, given), enabled=False):  # under vmap they are products
                return func(*args, **given)
        if func in WIDE:
            args, given = pytree.tree_map_only(Tensor, _widened, (args, given))
        elif func in ROUNDED:
            args, given = pytree.tree_map_only(Tensor, _as_operand, (args, given))
        return func(*args, **given)


def _device(*given: Any) -> str:
    return next((each.device.type for each in pytree.tree_leaves(given) if isinstance(each, Tensor)), "cpu")


def _has_float32(given: Any) -> bool:
    return any(isinstance(each, Tensor) and each.dtype == torch.float32 for each in pytree.tree_leaves(given))


class Autocast:
    """A network, or one of its layers, whose methods compute in bfloat16 and return float32."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """That of the network, so that `isinstance` says what it says without this."""
        return type(self._network)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The forward pass."""
        return self._rounded(self._network, *inputs, **named)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._network, name)
        if isinstance(found, nn.Module):
            return Autocast(found)
        return partial(self._rounded, found) if callable(found) else found

    def __getitem__(self, place: Any) -> Any:
        """A layer of an `nn.Sequential`, `nn.ModuleList` or `nn.ModuleDict`."""
        return _wrapped(self._network[place])  # type: ignore[index]

    def __iter__(self) -> Iterator[Any]:
        """Its layers, or the names of those of an `nn.ModuleDict`."""
        return map(_wrapped, self._network)  # type: ignore[call-overload, no-any-return]

    def __len__(self) -> int:
        """How many layers."""
        return len(self._network)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        """As every network without a length."""
        return True

    def _rounded(self, function: Callable[..., Any], *inputs: Any, **named: Any) -> Any:
        device = _device(list(self._network.parameters()), inputs, named)
        mapped = torch._C._functorch.peek_interpreter_stack() is not None
        wide = _WideOperations() if device == "cpu" or mapped else nullcontext()
        with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False), wide:
            found = function(*inputs, **named)
        return pytree.tree_map_only(Tensor, _widened, found)


def _wrapped(found: Any) -> Any:
    return Autocast(found) if isinstance(found, nn.Module) else found


def _as_operand(values: Tensor) -> Tensor:
    return values.bfloat16() if values.dtype == torch.float32 else values


def _widened(values: Tensor) -> Tensor:
    return values.float() if values.dtype == torch.bfloat16 else values


def callable_in(network: nn.Module, precision: RunPrecision | None) -> Network:
    """What the task calls: the network, in this precision."""
    return Autocast(network) if precision == "bfloat16" else network


def in_dtype(values: Tensor, precision: RunPrecision | None) -> Tensor:
    """A tensor of the data as runs of this precision get it; whole numbers stay what they are."""
    return values.double() if precision == "float64" and values.is_floating_point() else values

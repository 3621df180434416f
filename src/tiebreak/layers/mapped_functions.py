"""Functions of torch in a form that can be mapped over runs, where torch's own has none or goes run by run.

Each form computes the same from the same arguments, or answers `NotImplemented`: not in this form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import TransformType

_BAG = signature(F.embedding_bag)


def _one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """Of a known number of classes. torch looks at all values before; here a wrong one fails in the scatter."""
    if num_classes <= 0:
        return NotImplemented
    return tensor.new_zeros(*tensor.shape, num_classes).scatter(-1, tensor.unsqueeze(-1), 1)


def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_o = sum_ij x1_i w_oij x2_j + b_o."""
    found = torch.einsum("...i,oij,...j->...o", input1, weight, input2)
    return found if bias is None else found + bias


def _normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Any:
    """With `out`, which torch cannot map: as spectral norm does."""
    return NotImplemented if out is None else out.copy_(F.normalize(input, p, dim, eps))


def _embedding_bag(*args: Any, **kwargs: Any) -> Any:
    """Bags of equal length, input [B, L]: the sum, mean or largest of the rows of each, without those of padding."""
    given = _BAG.bind(*args, **kwargs)
    given.apply_defaults()
    input, weight, how = given.args[0], given.args[1], given.arguments
    if input.ndim != 2 or how["max_norm"] is not None or how["scale_grad_by_freq"] or how["sparse"]:
        return NotImplemented
    rows, real = F.embedding(input, weight), torch.ones_like(input, dtype=torch.bool)
    if how["padding_idx"] is not None:
        real = input != how["padding_idx"] % len(weight)
    count = real.sum(dim=1, keepdim=True)
    if how["mode"] == "max":
        largest = rows.masked_fill(~real.unsqueeze(-1), -torch.inf).max(dim=1).values
        return largest.masked_fill(count == 0, 0.0)
    if how["per_sample_weights"] is not None:
        rows = rows * how["per_sample_weights"].unsqueeze(-1)
    total = (rows * real.unsqueeze(-1)).sum(dim=1)
    return total / count.clamp(min=1) if how["mode"] == "mean" else total


def _rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """In evaluation, with the mean slope. Training draws: `keyed_draws`."""
    return NotImplemented if training else F.leaky_relu(input, (lower + upper) / 2, inplace)


def _set_item(self: Tensor, place: Any, value: Any) -> Any:
    """`x[mask] = number`: the mask has as many entries in every run, but not as many that count."""
    is_mask = isinstance(place, Tensor) and place.dtype == torch.bool
    if not is_mask or (isinstance(value, Tensor) and value.ndim > 0):
        return NotImplemented
    mask = place.view(*place.shape, *[1] * (self.ndim - place.ndim))
    self.copy_(torch.where(mask, value, self))
    return None


def _layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Inside torch.func.jvp: torch's own derivative of it mixes devices when it is traced."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    if all(each.key() != TransformType.Jvp for each in stack):
        return NotImplemented
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dim=axes, keepdim=True)
    found = centred * (centred.square().mean(dim=axes, keepdim=True) + eps).rsqrt()
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _to(self: Tensor, *args: Any, memory_format: torch.memory_format | None = None, **kwargs: Any) -> Any:
    """Where numbers lie in memory is decided for all runs together; torch cannot say it of one."""
    if memory_format is None:
        return NotImplemented
    return self.to(*args, **kwargs) if args or kwargs else self


def _contiguous(self: Tensor, memory_format: torch.memory_format = torch.contiguous_format) -> Any:
    return NotImplemented if memory_format == torch.contiguous_format else self.contiguous()


def _clone(input: Tensor, *, memory_format: torch.memory_format | None = None) -> Any:
    return NotImplemented if memory_format is None else input.clone()


def _like(make: Callable[..., Tensor]) -> Callable[..., Any]:
    def form(input: Tensor, *args: Any, memory_format: torch.memory_format | None = None, **kwargs: Any) -> Any:
        return NotImplemented if memory_format is None else make(input, *args, **kwargs)

    return form


def _gaussian_nll(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Without a look at the variances, which torch refuses if one is negative: here it gives NaN, and the run fails."""
    if reduction not in ("none", "mean", "sum"):
        return NotImplemented
    if not isinstance(var, Tensor):
        var = var * torch.ones_like(input)
    elif var.shape != input.shape and input.shape[:-1] == var.shape:
        var = var.unsqueeze(-1)
    least = torch.where(var.detach() < 0, torch.nan, eps)
    var = torch.where(var.detach() < eps, least + (var - var.detach()), var)  # its gradient is not cut
    each = 0.5 * (var.log() + (input - target).square() / var + (math.log(2 * math.pi) if full else 0.0))
    return {"mean": each.mean(), "sum": each.sum()}.get(reduction, each)


def _mv(input: Tensor, vec: Tensor) -> Tensor:
    """As a product of matrices, which autocast rounds alone and under vmap alike."""
    return (input @ vec.unsqueeze(-1)).squeeze(-1)


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Inside the block, `torch.distributions` does not look at the values that it is given, to refuse wrong ones.

    Wrong ones give NaN, and the run diverges.
    """
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)


FORMS: Mapping[Any, Callable[..., Any]] = {
    F.one_hot: _one_hot,
    F.bilinear: _bilinear,
    F.normalize: _normalize,
    F.embedding_bag: _embedding_bag,
    F.rrelu: _rrelu,
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    Tensor.__setitem__: _set_item,
    Tensor.to: _to,
    Tensor.contiguous: _contiguous,
    Tensor.clone: _clone,
    torch.clone: _clone,
    Tensor.mv: _mv,
    torch.mv: _mv,
    F.gaussian_nll_loss: _gaussian_nll,
    **{make: _like(make) for make in (torch.zeros_like, torch.ones_like, torch.full_like, torch.empty_like)},
}

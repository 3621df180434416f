"""Batch normalisation that reads its input twice, and backward twice: for a compiler that fuses what is between.

    y  = (x - m) r w + b,   r = 1 / sqrt(v + eps)
    dx = r w (dy - share (sum(dy) + xhat sum(dy xhat))),   xhat = (x - m) r

share [B, 1, ...] is what a value of each row counts in the mean m and in the variance v. Both sums forward are of
d = x - shift, where shift is a guess of the mean: v = E[d^2] - E[d]^2, of which little cancels. Autograd would make a
dozen operations on tensors of the size of x from this; the gradient above has one pass for both sums and one for dx.
Whatever type x has, the sums are in that of the shift.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _axes(x: Tensor) -> list[int]:
    return [axis for axis in range(x.ndim) if axis != 1]


def _of_channel(values: Tensor, x: Tensor) -> Tensor:
    """Values [C] beside x [B, C, ...]."""
    return values.view(-1, *(1,) * (x.ndim - 2))


class Normalise(torch.autograd.Function):
    """y, mean and biased variance [C] of x [B, C, ...]; the last two have no gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, shift: Tensor, share: Tensor, eps: float) -> Any:
        """y, mean and variance."""
        shifted = x.to(shift.dtype) - _of_channel(shift, x)
        weighed = shifted * share
        first, second = weighed.sum(_axes(x)), (weighed * shifted).sum(_axes(x))
        variance = (second - first * first).clamp(min=0.0)
        scale = (variance + eps).rsqrt() * weight
        y = (shifted - _of_channel(first, x)) * _of_channel(scale, x) + _of_channel(bias, x)
        return y.to(x.dtype), shift + first, variance

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """What the gradient needs."""
        x, weight, _, _, share, ctx.eps = inputs
        _, mean, variance = output
        ctx.mark_non_differentiable(mean, variance)
        ctx.save_for_backward(x, weight, share, mean, variance)

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Any) -> Any:
        """The gradients of x, weight and bias."""
        x, weight, share, mean, variance = ctx.saved_tensors
        scale = (variance + ctx.eps).rsqrt()
        above = dy.to(mean.dtype)
        normal = (x.to(mean.dtype) - _of_channel(mean, x)) * _of_channel(scale, x)
        bias, slope = above.sum(_axes(x)), (above * normal).sum(_axes(x))
        lost = share * (_of_channel(bias, x) + normal * _of_channel(slope, x))
        dx = (above - lost) * _of_channel(scale * weight, x)
        return dx.to(x.dtype), slope, bias, None, None, None

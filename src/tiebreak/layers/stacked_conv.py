"""Convolutions of many small networks at once, as an op of its own with its own vmap rule.

    y[b, o, i, j] = bias[o] + sum_{c, p, q} weight[o, c, p, q] x[b, c, s i + d p - z, s j + d q - z]

x [B, C, H, W], weight [O, C, P, Q], stride s, dilation d, padding z; all with a leading run axis here. Under vmap
`F.conv2d` becomes a grouped convolution, for which the GPU libraries have no good kernels (H200, 100 runs of the CNN of
the reports, batch 64: 4.9 ms a step). On a GPU these ops run the kernels of `kernels.convolution`;
elsewhere a plain loop over the runs, which is their specification. On a CPU the grouped convolution is the faster one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import grad as conv_grad

from tiebreak.cost.formulas import conv_size
from tiebreak.layers.transforms import once_differentiated

Ints = list[int]
PARTS = 16  # of a weight gradient's sum, at most: a fixed order, whatever the number of runs


@torch.library.custom_op("tiebreak::conv", mutates_args=())
def conv(x: Tensor, weight: Tensor, bias: Tensor, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    """The convolutions of n runs: x [n, B, C, H, W], weight [n, O, C, P, Q], bias [n, O]."""
    each = zip(x, weight, bias, strict=True)
    return torch.stack([F.conv2d(*run, stride, padding, dilation) for run in each])


@torch.library.custom_op("tiebreak::conv_input_gradient", mutates_args=())
def conv_input_gradient(dy: Tensor, weight: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    """The gradient with respect to x, whose images have this size."""
    shape = (dy.shape[1], weight.shape[2], *size)
    each = zip(weight, dy, strict=True)
    return torch.stack([conv_grad.conv2d_input(shape, *run, stride, padding, dilation) for run in each])  # type: ignore[no-untyped-call]


@torch.library.custom_op("tiebreak::conv_weight_gradient", mutates_args=())
def conv_weight_gradient(dy: Tensor, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    """The gradients with respect to weight (filters of this size) and bias: [n, parts, O, C P Q + 1].

    The bias is the last column. The parts, each of some of the batch's rows, are still to be summed, so that what
    follows can be fused with the sum.
    """
    shape, kept = (dy.shape[2], x.shape[2], *kernel), torch.promote_types(dy.dtype, torch.float32)
    each = []
    for images, whole in zip(x, dy, strict=True):
        parts = zip(images.split(chunk_of(len(images))), whole.split(chunk_of(len(images))), strict=True)
        each.append(torch.stack([_columns(*part, shape, kept, (stride, padding, dilation)) for part in parts]))
    return torch.stack(each)


def _columns(x: Tensor, dy: Tensor, shape: Sequence[int], kept: torch.dtype, how: Sequence[Ints]) -> Tensor:
    """The gradients with respect to weight (of this shape) and bias of some rows of one run [O, C P Q + 1]."""
    dw = conv_grad.conv2d_weight(x, shape, dy, *how)  # type: ignore[no-untyped-call]
    return torch.cat([dw.flatten(1).to(kept), dy.sum(dim=(0, 2, 3), dtype=kept)[:, None]], dim=1)


def chunk_of(rows: int) -> int:
    """How many of a batch's rows make up one part of a weight gradient."""
    return -(-rows // PARTS)


@conv.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    return x.new_empty(*x.shape[:2], weight.shape[1], *_sizes(x, weight.shape[-2:], stride, padding, dilation))


@conv_input_gradient.register_fake
def _(dy: Tensor, weight: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    return dy.new_empty(*dy.shape[:2], weight.shape[2], *size)


@conv_weight_gradient.register_fake
def _(dy: Tensor, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    rows = dy.shape[1]
    parts = -(-rows // chunk_of(rows))
    kept = torch.promote_types(dy.dtype, torch.float32)
    return dy.new_empty(dy.shape[0], parts, dy.shape[2], x.shape[2] * kernel[0] * kernel[1] + 1, dtype=kept)


@conv.register_kernel("cuda")
def _(x: Tensor, weight: Tensor, bias: Tensor, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    from tiebreak.layers.kernels import convolution

    sizes = _sizes(x, weight.shape[-2:], stride, padding, dilation)
    return convolution.forward(x, weight, bias, sizes, (stride, padding, dilation))


@conv_input_gradient.register_kernel("cuda")
def _(dy: Tensor, weight: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    from tiebreak.layers.kernels import convolution

    return convolution.input_gradient(dy, weight, size, (stride, padding, dilation))


@conv_weight_gradient.register_kernel("cuda")
def _(dy: Tensor, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    from tiebreak.layers.kernels import convolution

    return convolution.weight_gradient(dy, x, kernel, (stride, padding, dilation), chunk_of(dy.shape[1]))


def _sizes(x: Tensor, kernel: Sequence[int], stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    each = zip(x.shape[-2:], kernel, stride, padding, dilation, strict=True)
    return [conv_size(size, side, stride=step, padding=pad, dilation=gap) for size, side, step, pad, gap in each]


def _front(info: Any, tensor: Tensor, axis: int | None) -> Tensor:
    """The run axis first; what all runs share is repeated without a copy."""
    return tensor.expand(info.batch_size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)


class _Convolve(torch.autograd.Function):
    """`conv` of one run, and under vmap of all of them."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, *how: Ints) -> Tensor:
        return torch.ops.tiebreak.conv(x[None], weight[None], bias[None], *how)[0]  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, bias, *ctx.how = inputs
        ctx.save_for_backward(x, weight)
        ctx.dtypes = weight.dtype, bias.dtype

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        dx = _InputGradient.apply(dy, weight, list(x.shape[-2:]), *ctx.how) if ctx.needs_input_grad[0] else None  # type: ignore[no-untyped-call]
        dw, db = _WeightGradient.apply(dy, x, list(weight.shape[-2:]), *ctx.how)  # type: ignore[no-untyped-call]
        return dx, dw.reshape(weight.shape).to(ctx.dtypes[0]), db.to(ctx.dtypes[1]), None, None, None

    @staticmethod
    def vmap(info: Any, axes: Any, x: Tensor, weight: Tensor, bias: Tensor, *how: Ints) -> Any:
        tensors = [_front(info, *each) for each in zip((x, weight, bias), axes[:3], strict=True)]
        return torch.ops.tiebreak.conv(*tensors, *how), 0


class _InputGradient(torch.autograd.Function):
    @staticmethod
    def forward(dy: Tensor, weight: Tensor, *how: Ints) -> Tensor:
        return torch.ops.tiebreak.conv_input_gradient(dy[None], weight[None], *how)[0]  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass  # a second derivative is nobody's business here: asking for it raises

    @staticmethod
    def vmap(info: Any, axes: Any, dy: Tensor, weight: Tensor, *how: Ints) -> Any:
        tensors = [_front(info, *each) for each in zip((dy, weight), axes[:2], strict=True)]
        return torch.ops.tiebreak.conv_input_gradient(*tensors, *how), 0


class _WeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(dy: Tensor, x: Tensor, kernel: Ints, *how: Ints) -> tuple[Tensor, Tensor]:
        parts = torch.ops.tiebreak.conv_weight_gradient(dy[None], x[None], kernel, *how)[0]
        return parts[..., :-1].sum(dim=0), parts[..., -1].sum(dim=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, axes: Any, dy: Tensor, x: Tensor, *how: Ints) -> Any:
        tensors = [_front(info, *each) for each in zip((dy, x), axes[:2], strict=True)]
        parts = torch.ops.tiebreak.conv_weight_gradient(*tensors, *how)
        return (parts[..., :-1].sum(dim=1), parts[..., -1].sum(dim=1)), (0, 0)  # each fused with its update


class StackedConv2d(nn.Conv2d):
    """An `nn.Conv2d` with a good form for many runs: same parameters, same numbers."""

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of x."""
        if not once_differentiated():
            return super().forward(x)
        bias = self.weight.new_zeros(len(self.weight)) if self.bias is None else self.bias
        how = (list(self.stride), [int(side) for side in self.padding], list(self.dilation))
        tensors: tuple[Tensor, ...] = (x, self.weight, bias)
        if torch.is_autocast_enabled(x.device.type):  # as F.conv2d: rounded products
            tensors = tuple(each.to(torch.get_autocast_dtype(x.device.type)) for each in tensors)
        return _Convolve.apply(*tensors, *how)  # type: ignore[no-any-return, no-untyped-call]


def stack_convolutions(network: nn.Module) -> None:
    """Give every plain `nn.Conv2d` its form for many runs. Groups and paddings other than zeros stay as they are."""
    for layer in network.modules():
        plain = type(layer) is nn.Conv2d and layer.groups == 1 and layer.padding_mode == "zeros"
        if plain and not isinstance(layer.padding, str):
            layer.__class__ = StackedConv2d

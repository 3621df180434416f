"""Convolutions of many networks on tensor cores, 1d and 2d, any groups.

As `stacked_conv`, with other kernels (`kernels.conv_products`, `kernels.conv_depthwise`): implicit matrix products in
float32, TF32 or bfloat16 with sums in float32. Results have their channels last, and so has what is computed from
them. Elsewhere than on a GPU the ops are loops over the runs: their specification. A 1d convolution is a 2d one of
height 1.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import grad as conv_grad

from tiebreak.cost.formulas import conv_size
from tiebreak.layers.batchnorm import BatchNorm
from tiebreak.layers.transforms import once_differentiated

# Examples from which on this form is the faster one: at 64 it takes a third of the time, at 8 up to 16 % more.
BATCH = 32
Ints = list[int]


@torch.library.custom_op("tiebreak::product_conv", mutates_args=())
def product_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The convolutions of n runs: x [n, B, C, H, W], weight [n, O, C / groups, P, Q], bias [n, O]."""
    biases = [None] * len(x) if bias is None else list(bias)
    each = [F.conv2d(*run, stride, padding, dilation, groups) for run in zip(x, weight, biases, strict=True)]
    return _last(torch.stack(each))


@torch.library.custom_op("tiebreak::product_conv_input", mutates_args=())
def product_conv_input(
    dy: Tensor, weight: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The gradient with respect to x, whose images have this size."""
    shape = (dy.shape[1], weight.shape[2] * groups, *size)
    each = zip(weight, dy, strict=True)
    found = [conv_grad.conv2d_input(shape, *run, stride, padding, dilation, groups) for run in each]  # type: ignore[no-untyped-call]
    return _last(torch.stack(found))


@torch.library.custom_op("tiebreak::product_conv_weight", mutates_args=())
def product_conv_weight(
    dy: Tensor, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The gradient with respect to weight (filters of this size), in float32 at least."""
    shape, kept = (dy.shape[2], x.shape[2] // groups, *kernel), torch.promote_types(dy.dtype, torch.float32)
    each = zip(x.to(kept), dy.to(kept), strict=True)
    found = [
        conv_grad.conv2d_weight(images, shape, above, stride, padding, dilation, groups)  # type: ignore[no-untyped-call]
        for images, above in each
    ]
    return _taps_first(found[0], len(found)).copy_(torch.stack(found))


def _last(values: Tensor) -> Tensor:
    """The same with its channels last in memory."""
    return _empty(values, values.shape[2], list(values.shape[-2:])).copy_(values)


def _taps_first(like: Tensor, runs: int) -> Tensor:
    """Empty weights [n, O, C, P, Q] of such a layer whose taps come first in memory: what the kernels write."""
    outputs, inputs, *kernel = like.shape
    return like.new_empty(runs, *kernel, outputs, inputs).permute(0, 3, 4, 1, 2)


def _empty(like: Tensor, channels: int, sizes: Ints) -> Tensor:
    return like.new_empty(*like.shape[:2], *sizes, channels).permute(0, 1, 4, 2, 3)


def _sizes(x: Tensor, weight: Tensor, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    each = zip(x.shape[-2:], weight.shape[-2:], stride, padding, dilation, strict=True)
    return [conv_size(size, side, stride=step, padding=pad, dilation=gap) for size, side, step, pad, gap in each]


@product_conv.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    return _empty(x, weight.shape[1], _sizes(x, weight, stride, padding, dilation))


@product_conv_input.register_fake
def _(dy: Tensor, weight: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Tensor:
    return _empty(dy, weight.shape[2] * groups, size)


@product_conv_weight.register_fake
def _(dy: Tensor, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Tensor:
    kept = torch.promote_types(dy.dtype, torch.float32)
    return _taps_first(dy.new_empty(dy.shape[2], x.shape[2] // groups, *kernel, dtype=kept), dy.shape[0])


@product_conv.register_kernel("cuda")
def _(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    from tiebreak.layers.kernels import conv_depthwise, conv_products

    sizes, how = _sizes(x, weight, stride, padding, dilation), (stride, padding, dilation)
    if weight.shape[2] == 1 and groups > 1:
        return conv_depthwise.forward(x, weight, bias, sizes, how)
    return conv_products.forward(x, weight, bias, sizes, how, groups)


@product_conv_input.register_kernel("cuda")
def _(dy: Tensor, weight: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Tensor:
    from tiebreak.layers.kernels import conv_depthwise, conv_products

    how = (stride, padding, dilation)
    if weight.shape[2] == 1 and groups > 1:
        return conv_depthwise.input_gradient(dy, weight, size, how, groups)
    return conv_products.input_gradient(dy, weight, size, how, groups)


@product_conv_weight.register_kernel("cuda")
def _(dy: Tensor, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Tensor:
    from tiebreak.layers.kernels import conv_depthwise, conv_products

    how = (stride, padding, dilation)
    if x.shape[2] == groups > 1:
        parts = conv_depthwise.weight_gradient(dy, x, kernel, how)
    else:
        parts = conv_products.weight_gradient(dy, x, kernel, how, groups)
    return parts.permute(0, 1, 4, 5, 2, 3).sum(dim=1).permute(0, 3, 4, 1, 2)  # summed as it lies


def _front(info: Any, tensor: Tensor | None, axis: int | None) -> Tensor | None:
    """The run axis first; what all runs share is repeated without a copy."""
    if tensor is None:
        return None
    if axis is None:
        return tensor.expand(info.batch_size, *tensor.shape)
    # The compiler copies what a permutation reads, also one that changes nothing.
    return tensor.movedim(axis, 0) if axis else tensor


def _laid(weight: Tensor | None, order: tuple[int, ...]) -> Any:
    """The weight with its axes in this order in memory: the numbers that a sum reads together lie together."""
    assert weight is not None
    return weight.permute(order).clone(memory_format=torch.contiguous_format).permute(_inverse(order))


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


class _Convolve(torch.autograd.Function):
    """`product_conv` of one run, and under vmap of all of them."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
        own = None if bias is None else bias[None]
        return torch.ops.tiebreak.product_conv(x[None], weight[None], own, *how)[0]  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, bias, *ctx.how = inputs
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        dx = _Gradient.apply("input", dy, weight, list(x.shape[-2:]), *ctx.how) if ctx.needs_input_grad[0] else None  # type: ignore[no-untyped-call]
        dw = _Gradient.apply("weight", dy, x, list(weight.shape[-2:]), *ctx.how)  # type: ignore[no-untyped-call]
        kept = torch.promote_types(dy.dtype, torch.float32)
        db = dy.sum(dim=(0, 2, 3), dtype=kept).to(weight.dtype) if ctx.biased else None
        return dx, dw.to(weight.dtype), db, None, None, None, None

    @staticmethod
    def vmap(info: Any, axes: Any, x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Any:
        x, weight, bias = (_front(info, *each) for each in zip((x, weight, bias), axes[:3], strict=True))  # type: ignore[assignment]
        return torch.ops.tiebreak.product_conv(x, _laid(weight, (0, 3, 4, 1, 2)), bias, *how), 0


class _Gradient(torch.autograd.Function):
    """The gradient with respect to the input or the weight."""

    @staticmethod
    def forward(kind: str, dy: Tensor, other: Tensor, *how: Any) -> Tensor:
        op = getattr(torch.ops.tiebreak, f"product_conv_{kind}")
        return op(dy[None], other[None], *how)[0]  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass  # asking for a second derivative raises

    @staticmethod
    def vmap(info: Any, axes: Any, kind: str, dy: Tensor, other: Tensor, *how: Any) -> Any:
        dy, other = (_front(info, *each) for each in zip((dy, other), axes[1:3], strict=True))  # type: ignore[assignment]
        if kind == "input":
            other = _laid(other, (0, 3, 4, 2, 1))
        return getattr(torch.ops.tiebreak, f"product_conv_{kind}")(dy, other, *how), 0


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """A convolution of one run, 1d or 2d; under autocast in its type, as F.conv2d."""
    if torch.is_autocast_enabled(x.device.type):
        kept = torch.get_autocast_dtype(x.device.type)
        x, weight, bias = x.to(kept), weight.to(kept), None if bias is None else bias.to(kept)
    if x.ndim == 4:
        return _Convolve.apply(x, weight, bias, stride, padding, dilation, groups)  # type: ignore[no-any-return, no-untyped-call]
    flat = (x.unsqueeze(-2), weight.unsqueeze(-2), bias, [1, *stride], [0, *padding], [1, *dilation], groups)
    return _Convolve.apply(*flat).squeeze(-2)  # type: ignore[no-any-return, no-untyped-call]


class _Product(nn.modules.conv._ConvNd):
    """What the two layers share: torch's layer with another form."""

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of x."""
        if not once_differentiated():
            return super().forward(x)  # type: ignore[no-any-return]  # that of torch's layer
        padding = [int(side) for side in self.padding]
        how = (list(self.stride), padding, list(self.dilation), self.groups)
        return convolve(x, self.weight, self.bias, *how)


class ProductConv1d(_Product, nn.Conv1d):
    """An `nn.Conv1d` for many runs: same parameters, same numbers up to rounding."""


class ProductConv2d(_Product, nn.Conv2d):
    """An `nn.Conv2d` for many runs."""


FORMS: dict[type[nn.Module], type[nn.Module]] = {nn.Conv1d: ProductConv1d, nn.Conv2d: ProductConv2d}


def use_products(network: nn.Module, batch: int = BATCH) -> None:
    """Give `nn.Conv1d` and `nn.Conv2d` this form, and batch normalisation its statistics in one pass.

    Of small batches only those that `stacked_conv` leaves as they are: with groups, or of one dimension. Paddings other
    than zeros, or by name, stay as they are.
    """
    for layer in network.modules():
        form = FORMS.get(type(layer))
        faster = batch >= BATCH or isinstance(layer, nn.Conv1d) or getattr(layer, "groups", 1) > 1
        if form is not None and faster and layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
            layer.__class__ = form
        elif isinstance(layer, BatchNorm):
            layer.one_pass = True


def has_products(network: nn.Module) -> bool:
    """Whether the network has layers of this form."""
    return any(isinstance(layer, _Product) for layer in network.modules())


def compile_kernels(*calls: Callable[[], object]) -> AbstractContextManager[None]:
    """Compile the kernels of the calls at the same time: there is one for each size of a layer. See `compile_ahead`."""
    from tiebreak.layers.kernels.compile_ahead import only_compiled

    return only_compiled(*calls)

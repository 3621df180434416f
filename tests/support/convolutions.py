"""Convolution kernels against their plain twins: the shapes that are compared, and the comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tiebreak.layers.product_conv import Ints, product_conv, product_conv_input, product_conv_weight

DTYPES = (torch.float32, torch.bfloat16)
ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 4e-3}  # norm-wise; a bfloat16 result is rounded once
TF32 = 2e-3  # of one TF32 product


@dataclass(frozen=True)
class Shape:
    """One convolution: batch, channels, image, filters and where they are applied."""

    rows: int
    inputs: int
    outputs: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    biased: bool = True

    @property
    def depthwise(self) -> bool:
        """Whether each output has one input: the kernels for these are others."""
        return self.groups > 1 and self.groups == self.inputs

    @property
    def how(self) -> tuple[Ints, Ints, Ints]:
        """Stride, padding and dilation."""
        return list(self.stride), list(self.padding), list(self.dilation)


PRODUCTS = {
    "one channel": Shape(3, 1, 8, (9, 7), (3, 3), padding=(1, 1)),
    "everything uneven": Shape(3, 5, 7, (11, 8), (2, 3), (3, 2), (1, 2), (2, 1)),
    "one by one, strided": Shape(4, 6, 6, (5, 5), (1, 1), (2, 2)),
    "groups": Shape(2, 6, 9, (6, 7), (3, 3), (2, 1), (1, 1), groups=3),
    "of one dimension": Shape(3, 4, 5, (1, 23), (1, 3), (1, 2), (0, 1), biased=False),
    "one image, five by five": Shape(1, 3, 17, (9, 8), (5, 5), padding=(2, 2)),
    "many outputs of one channel, stride 3": Shape(5, 1, 65, (13, 10), (5, 5), (3, 3)),
}
TAPS = {
    "more channels than a tile": Shape(2, 20, 70, (6, 5), (3, 3), padding=(1, 1), biased=False),
    "strided groups": Shape(2, 34, 36, (7, 6), (3, 2), (2, 3), (1, 1), groups=2),
    "strided and dilated": Shape(2, 16, 16, (9, 8), (2, 2), (2, 1), (1, 2), (2, 3)),
    "one image, five by five, no padding": Shape(1, 17, 65, (7, 8), (5, 5)),
    "dilated": Shape(3, 65, 17, (9, 7), (3, 3), padding=(2, 0), dilation=(2, 2)),
    "of one dimension": Shape(3, 17, 20, (1, 23), (1, 5), (1, 3), (0, 2)),
    "one output": Shape(2, 16, 1, (6, 5), (3, 3), (2, 2), (1, 1)),
    "one by one, strided": Shape(3, 32, 48, (7, 5), (1, 1), (2, 2), biased=False),
}
LARGE = {  # of residual networks: many tiles at a time, for a GPU
    "16 channels": Shape(64, 16, 16, (28, 28), (3, 3), padding=(1, 1), biased=False),
    "32 channels": Shape(64, 32, 32, (14, 14), (3, 3), padding=(1, 1), biased=False),
    "64 channels": Shape(64, 64, 64, (7, 7), (3, 3), padding=(1, 1), biased=False),
    "16 to 32 channels": Shape(64, 16, 32, (28, 28), (3, 3), (2, 2), (1, 1), biased=False),
}
DEPTHWISE = {
    "padded": Shape(3, 5, 5, (9, 7), (3, 3), padding=(1, 1), groups=5, biased=False),
    "strided and dilated": Shape(2, 3, 3, (11, 8), (2, 3), (2, 3), (1, 2), (2, 1), groups=3),
    "two outputs a channel": Shape(2, 4, 8, (6, 7), (3, 3), (2, 1), (1, 1), groups=4),
    "more channels than a tile": Shape(1, 37, 37, (4, 5), (3, 3), padding=(1, 1), groups=37),
}


def tensors_of(shape: Shape, dtype: torch.dtype, runs: int = 2) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """x, weight, bias and dy of some runs, in numbers that the type can hold."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(runs, shape.rows, shape.inputs, *shape.size, generator=generator).to(dtype)
    weight = torch.randn(runs, shape.outputs, shape.inputs // shape.groups, *shape.kernel, generator=generator)
    bias = torch.randn(runs, shape.outputs, generator=generator).to(dtype) if shape.biased else None
    y = product_conv(x.double(), weight.double(), None, *shape.how, shape.groups)
    return x, weight.to(dtype), bias, torch.randn(y.shape, generator=generator).to(dtype)


def _away(found: Tensor, wanted: Tensor) -> float:
    assert found.shape == wanted.shape
    return float(torch.linalg.vector_norm(found.double().cpu() - wanted) / torch.linalg.vector_norm(wanted))


def check(shape: Shape, dtype: torch.dtype, device: str, rounding: float = 0.0) -> None:
    """Compare the kernels of a convolution with the CPU form of the same ops in float64, their specification.

    `rounding` is that of the products, above the one of the type.
    """
    if shape.depthwise:
        from tiebreak.layers.kernels import conv_depthwise

        kernels: Any = conv_depthwise
        forward, weight_gradient = kernels.forward, kernels.weight_gradient
    else:
        from tiebreak.layers.kernels import conv_products

        kernels = conv_products
        forward = partial(kernels.forward, groups=shape.groups)
        weight_gradient = partial(kernels.weight_gradient, groups=shape.groups)
    groups, limit = shape.groups, max(rounding, ROUNDING[dtype])
    x, weight, bias, dy = tensors_of(shape, dtype)
    wide = None if bias is None else bias.double()
    wanted = product_conv(x.double(), weight.double(), wide, *shape.how, groups)
    there = None if bias is None else bias.to(device)
    a, b, above = x.to(device), weight.to(device), dy.to(device)
    y = forward(a, b, there, list(wanted.shape[-2:]), shape.how)
    assert y.stride() == wanted.stride()
    assert _away(y, wanted) < limit
    dx = kernels.input_gradient(above, b, shape.size, shape.how, groups)
    gradient = product_conv_input(dy.double(), weight.double(), list(shape.size), *shape.how, groups)
    assert dx.stride() == gradient.stride()
    assert _away(dx, gradient) < limit
    parts = weight_gradient(above, a, shape.kernel, shape.how)
    dw = product_conv_weight(dy.double(), x.double(), list(shape.kernel), *shape.how, groups)
    assert parts.dtype == torch.float32
    assert _away(parts.sum(dim=1), dw) < max(rounding, ROUNDING[torch.float32])
    # A run's numbers do not depend on its company. Clones: in memory that begins elsewhere, sums have another order.
    one, own, over = (each[1:].clone() for each in (a, b, above))
    alone = forward(one, own, None if there is None else there[1:].clone(), y.shape[-2:], shape.how)
    assert torch.equal(alone[0], y[1])
    assert torch.equal(weight_gradient(over, one, shape.kernel, shape.how)[0], parts[1])
    last = a.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
    assert torch.equal(forward(last, b, there, y.shape[-2:], shape.how), y)  # nor on the layout of its input
    again = weight_gradient(above, last, shape.kernel, shape.how)
    if shape.depthwise:  # its sums have another order where channels lie apart
        assert _away(again.sum(dim=1), dw) < ROUNDING[torch.float32]
    else:
        assert torch.equal(again, parts)


def check_repeats(shape: Shape, dtype: torch.dtype, times: int = 10) -> None:
    """The kernels on a GPU give the same bits every time: no program reads what another has not yet written."""
    from tiebreak.layers.kernels import conv_products

    x, weight, _, dy = tensors_of(shape, dtype)
    x, dy = (each.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3).to("cuda") for each in (x, dy))
    weight, how, groups = weight.to("cuda"), shape.how, shape.groups
    works: tuple[Callable[[], Tensor], ...] = (
        lambda: conv_products.forward(x, weight, None, dy.shape[-2:], how, groups),
        lambda: conv_products.input_gradient(dy, weight, shape.size, how, groups),
        lambda: conv_products.weight_gradient(dy, x, shape.kernel, how, groups),
    )
    for work in works:
        first = work()
        assert all(torch.equal(work(), first) for _ in range(times))


def check_in_interpreter(shapes: Iterable[Shape]) -> None:
    """Check all shapes on a CPU, with sums of several parts. The process has TRITON_INTERPRET=1."""
    from tiebreak.layers.kernels import conv_products

    conv_products.PLACES = 50
    for shape in shapes:
        for dtype in DTYPES:
            check(shape, dtype, "cpu")

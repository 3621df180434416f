"""Shapes of convolutions that kernels and their plain twins are compared at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tiebreak.layers.product_conv import Ints, product_conv

ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 4e-3}  # norm-wise; a bfloat16 result is rounded once


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
    def how(self) -> tuple[Ints, Ints, Ints]:
        """Stride, padding and dilation."""
        return list(self.stride), list(self.padding), list(self.dilation)


PRODUCTS = {
    "one channel": Shape(3, 1, 8, (9, 7), (3, 3), padding=(1, 1)),
    "everything uneven": Shape(3, 5, 7, (11, 8), (2, 3), (3, 2), (1, 2), (2, 1)),
    "more channels than a tile": Shape(2, 20, 70, (6, 5), (3, 3), padding=(1, 1), biased=False),
    "one by one, strided": Shape(4, 6, 6, (5, 5), (1, 1), (2, 2)),
    "groups": Shape(2, 6, 9, (6, 7), (3, 3), (2, 1), (1, 1), groups=3),
    "of one dimension": Shape(3, 4, 5, (1, 23), (1, 3), (1, 2), (0, 1), biased=False),
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

"""The convolution kernels against the CPU form of the same ops, gradients included.

Run as a program, this file checks some shapes with the interpreter.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from support.triton_kernels import CLOSE, apart, interpret, needs_interpreter
from tiebreak.layers.stacked_conv import chunk_of, conv, conv_input_gradient, conv_weight_gradient

# rows, channels in and out, height and width, kernel, stride, padding, dilation
CONVOLUTIONS = {
    "the CNN's first": (8, 1, 8, (28, 28), (3, 3), (1, 1), (1, 1), (1, 1)),
    "the CNN's second": (8, 8, 16, (14, 14), (3, 3), (1, 1), (0, 0), (1, 1)),
    "strided": (8, 8, 16, (14, 13), (3, 3), (2, 2), (0, 0), (1, 1)),
    "5x5": (5, 3, 8, (12, 9), (5, 5), (1, 1), (2, 2), (1, 1)),
    "everything uneven": (3, 5, 7, (11, 8), (2, 3), (3, 2), (1, 2), (2, 1)),
    "more rows than parts": (35, 2, 3, (6, 6), (3, 3), (1, 1), (0, 0), (1, 1)),
    "more channels than a tile": (2, 20, 35, (6, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one by one": (4, 6, 6, (5, 5), (1, 1), (1, 1), (0, 0), (1, 1)),
}


def check_convolution(name: str, device: str) -> None:
    from tiebreak.layers.kernels import convolution

    rows, inputs, outputs, size, kernel, *sides = CONVOLUTIONS[name]
    how: Any = [list(each) for each in sides]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, rows, inputs, *size, generator=generator)
    weight = torch.randn(3, outputs, inputs, *kernel, generator=generator)
    bias = torch.randn(3, outputs, generator=generator)
    wanted = conv(x.double(), weight.double(), bias.double(), *how)
    dy = torch.randn(wanted.shape, generator=generator)
    sizes, chunk = wanted.shape[-2:], chunk_of(rows)
    gpu = [each.to(device) for each in (x, weight, bias, dy)]
    found = convolution.forward(gpu[0], gpu[1], gpu[2], sizes, tuple(how))
    assert apart(found, wanted) < CLOSE
    dx = convolution.input_gradient(gpu[3], gpu[1], size, tuple(how))
    assert apart(dx, conv_input_gradient(dy.double(), weight.double(), list(size), *how)) < CLOSE
    dw = convolution.weight_gradient(gpu[3], gpu[0], kernel, tuple(how), chunk)
    assert apart(dw, conv_weight_gradient(dy.double(), x.double(), list(kernel), *how)) < CLOSE
    # A run's numbers do not depend on its company, and strides do not matter.
    last = [each[2:] for each in gpu]
    assert torch.equal(convolution.forward(last[0], last[1], last[2], sizes, tuple(how))[0], found[2])
    assert torch.equal(convolution.input_gradient(last[3], last[1], size, tuple(how))[0], dx[2])
    assert torch.equal(convolution.weight_gradient(last[3], last[0], kernel, tuple(how), chunk)[0], dw[2])
    turned = gpu[0].transpose(-1, -2).contiguous().transpose(-1, -2)
    assert torch.equal(convolution.forward(turned, gpu[1], gpu[2], sizes, tuple(how)), found)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_on_a_gpu(name: str) -> None:
    check_convolution(name, "cuda")


@pytest.mark.gpu
def test_the_ops_take_their_kernels_on_a_gpu() -> None:
    x, weight, bias = torch.randn(2, 4, 3, 9, 8), torch.randn(2, 5, 3, 3, 3), torch.randn(2, 5)
    how = ([2, 1], [1, 0], [1, 2])
    y = conv(x, weight, bias, *how)
    for op, arguments in (
        (conv, (x, weight, bias)),
        (conv_input_gradient, (y, weight, [9, 8])),
        (conv_weight_gradient, (y, x, [3, 3])),
    ):
        there = [each.cuda() if isinstance(each, Tensor) else each for each in arguments]
        assert apart(op(*there, *how), op(*arguments, *how).double()) < 10 * CLOSE
        torch.library.opcheck(op, (*there, *how), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.kernels
@needs_interpreter
def test_convolutions_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    for each in ("everything uneven", "more rows than parts", "one by one"):  # the interpreter is slow
        check_convolution(each, "cpu")

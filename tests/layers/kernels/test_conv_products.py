"""The convolution products against the CPU form of the same ops in float64, which is their specification.

Run as a program, this file checks all shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.convolutions import PRODUCTS, ROUNDING, tensors_of
from support.triton_kernels import interpret, needs_interpreter
from tiebreak.layers.product_conv import product_conv, product_conv_input, product_conv_weight

DTYPES = (torch.float32, torch.bfloat16)


def away(found: torch.Tensor, wanted: torch.Tensor) -> float:
    assert found.shape == wanted.shape
    return float(torch.linalg.vector_norm(found.double().cpu() - wanted) / torch.linalg.vector_norm(wanted))


def check(name: str, dtype: torch.dtype, device: str) -> None:
    from tiebreak.layers.kernels import conv_products as kernels

    shape = PRODUCTS[name]
    groups, limit = shape.groups, ROUNDING[dtype]
    x, weight, bias, dy = tensors_of(shape, dtype)
    wide = None if bias is None else bias.double()
    wanted = product_conv(x.double(), weight.double(), wide, *shape.how, groups)
    there = None if bias is None else bias.to(device)
    a, b, above = x.to(device), weight.to(device), dy.to(device)
    y = kernels.forward(a, b, there, list(wanted.shape[-2:]), shape.how, groups)
    assert y.stride() == wanted.stride()
    assert away(y, wanted) < limit
    dx = kernels.input_gradient(above, b, shape.size, shape.how, groups)
    gradient = product_conv_input(dy.double(), weight.double(), list(shape.size), *shape.how, groups)
    assert dx.stride() == gradient.stride()
    assert away(dx, gradient) < limit
    parts = kernels.weight_gradient(above, a, shape.kernel, shape.how, groups)
    dw = product_conv_weight(dy.double(), x.double(), list(shape.kernel), *shape.how, groups)
    assert parts.dtype == torch.float32
    assert away(parts.sum(dim=1), dw) < ROUNDING[torch.float32]
    # A run's numbers do not depend on its company, nor on the memory layout of its inputs.
    alone = kernels.forward(a[1:], b[1:], None if there is None else there[1:], y.shape[-2:], shape.how, groups)
    assert torch.equal(alone[0], y[1])
    last = a.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
    assert torch.equal(kernels.forward(last, b, there, y.shape[-2:], shape.how, groups), y)
    again = kernels.weight_gradient(above[1:], last[1:], shape.kernel, shape.how, groups)
    assert torch.equal(again[0], parts[1])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    check(name, dtype, "cuda")


@pytest.mark.kernels
@needs_interpreter
def test_products_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    from tiebreak.layers.kernels import conv_products

    conv_products.PLACES = 50  # so that sums have several parts
    for each in PRODUCTS:
        for kind in DTYPES:
            check(each, kind, "cpu")

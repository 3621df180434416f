"""The convolution products against the CPU form of the same ops in float64, which is their specification.

Run as a program, this file checks all shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.convolutions import DTYPES, PRODUCTS, check, check_in_interpreter
from support.triton_kernels import interpret, needs_interpreter


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    check(PRODUCTS[name], dtype, "cuda")


@pytest.mark.kernels
@needs_interpreter
def test_products_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    check_in_interpreter(PRODUCTS.values())

"""The convolution products against the CPU form of the same ops in float64, which is their specification.

Run as a program, this file checks all shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.convolutions import DTYPES, PRODUCTS, TF32, check, check_in_interpreter
from support.triton_kernels import interpret, needs_interpreter


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    check(PRODUCTS[name], dtype, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_in_tf32_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    check(PRODUCTS[name], torch.float32, "cuda", TF32)


@pytest.mark.kernels
@needs_interpreter
def test_products_in_the_interpreter() -> None:
    interpret(__file__)


def test_no_tile_that_four_warps_multiply_together() -> None:
    pytest.importorskip("triton")
    from tiebreak.layers.kernels.conv_products import Blocks

    assert Blocks(32, 16, 16, 4).stages > Blocks(128, 16, 16, 4, 1).stages
    with pytest.raises(ValueError, match="64 rows"):
        Blocks(64, 16, 16, 8)


if __name__ == "__main__":
    check_in_interpreter(PRODUCTS.values())

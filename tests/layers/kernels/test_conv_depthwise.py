"""The depthwise kernels against the CPU form of the same ops in float64, which is their specification.

Run as a program, this file checks all shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.convolutions import DEPTHWISE, DTYPES, check, check_in_interpreter
from support.triton_kernels import interpret, needs_interpreter


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    check(DEPTHWISE[name], dtype, "cuda")


@pytest.mark.kernels
@needs_interpreter
def test_depthwise_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    check_in_interpreter(DEPTHWISE.values())

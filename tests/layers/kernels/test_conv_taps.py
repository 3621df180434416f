"""The products of one tap at a time against the CPU form of the same ops in float64, which is their specification.

Run as a program, this file checks all shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.convolutions import DTYPES, LARGE, TAPS, TF32, check, check_in_interpreter, check_repeats
from support.triton_kernels import interpret, needs_interpreter, unfenced


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TAPS)
def test_taps_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    check(TAPS[name], dtype, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("name", TAPS)
def test_taps_in_tf32_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    check(TAPS[name], torch.float32, "cuda", TF32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LARGE)
def test_taps_of_large_layers_on_a_gpu(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    check(LARGE[name], dtype, "cuda", TF32)
    check_repeats(LARGE[name], dtype)
    from tiebreak.layers.kernels.conv_taps import gather_taps, weight_taps

    assert not unfenced(gather_taps) + unfenced(weight_taps)


@pytest.mark.kernels
@needs_interpreter
def test_taps_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    check_in_interpreter(TAPS.values())

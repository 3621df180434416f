"""No kernel adds packed integers of 16 bits, which ptxas gets wrong. Run as a program, this file compiles them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
import torch

from support.compiled_kernels import compiling, packed

IMAGES = (  # channels in and out, size, stride, groups, batch
    (1, 16, 28, 1, 1, 64),
    (16, 16, 28, 1, 1, 64),
    (64, 64, 7, 1, 1, 64),
    (16, 32, 28, 2, 1, 64),
    (32, 32, 14, 1, 4, 64),
    (16, 16, 28, 1, 16, 64),
    (8, 16, 13, 1, 1, 8),
)


def launch_convolutions(dtype: torch.dtype) -> None:
    from tiebreak.layers.kernels import conv_depthwise, conv_products, convolution

    for inputs, outputs, size, stride, groups, batch in IMAGES:
        how, out = ([stride] * 2, [1, 1], [1, 1]), -(-size // stride)
        x = torch.zeros(2, batch, size, size, inputs, dtype=dtype).permute(0, 1, 4, 2, 3)
        dy = torch.zeros(2, batch, out, out, outputs, dtype=dtype).permute(0, 1, 4, 2, 3)
        weight = torch.zeros(2, outputs, inputs // groups, 3, 3, dtype=dtype)
        if groups == inputs > 1:
            conv_depthwise.forward(x, weight, None, [out] * 2, how)
            conv_depthwise.input_gradient(dy, weight, [size] * 2, how, inputs)
            conv_depthwise.weight_gradient(dy, x, [3, 3], how)
            continue
        conv_products.forward(x, weight, None, [out] * 2, how, groups)
        conv_products.input_gradient(dy, weight, [size] * 2, how, groups)
        conv_products.weight_gradient(dy, x, [3, 3], how, groups)
        if groups == 1 and dtype == torch.float32:
            convolution.forward(x, weight, weight.new_zeros(2, outputs), [out] * 2, how)
            convolution.input_gradient(dy, weight, [size] * 2, how)
            convolution.weight_gradient(dy, x, [3, 3], how, batch)


@pytest.mark.kernels
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton: make kernels-test")
def test_no_kernel_adds_packed_integers() -> None:
    # The interpreter is chosen when triton is imported: a process without it.
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    with compiling() as found:
        for dtype in (torch.float32, torch.bfloat16):
            launch_convolutions(dtype)
    assert len(found) > 30
    assert not packed(found), packed(found)

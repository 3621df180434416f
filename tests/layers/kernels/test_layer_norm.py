"""The kernels of layer normalisation against autograd in float64.

Run as a program, this file checks some shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from support.triton_kernels import CLOSE, apart, interpret, needs_interpreter

SHAPES = {"one": (1, 1), "uneven": (37, 13), "parts": (600, 40), "speech": (3000, 200), "wide": (9, 3000)}  # R, W


def check(name: str, device: str) -> None:
    from tiebreak.layers.kernels import layer_norm

    rows, width = SHAPES[name]
    generator = torch.Generator().manual_seed(0)
    x, above = (3 * torch.randn(3, rows, width, generator=generator) + 1 for _ in range(2))
    weight, bias = (torch.randn(3, width, generator=generator) for _ in range(2))
    x_there, weight_there, bias_there, above_there = (each.to(device) for each in (x, weight, bias, above))
    y, means, scales = layer_norm.forward(x_there, weight_there, bias_there, 1e-5)
    found = layer_norm.backward(x_there, weight_there, means, scales, above_there)
    wide = [each.double().requires_grad_() for each in (x, weight, bias)]
    wanted = torch.stack([F.layer_norm(wide[0][run], (width,), wide[1][run], wide[2][run]) for run in range(3)])
    assert apart(y, wanted.detach()) < CLOSE
    wanted.backward(above.double())  # type: ignore[no-untyped-call]
    for mine, theirs in zip(found, wide, strict=True):
        assert theirs.grad is not None
        if theirs.grad.norm() > 1e-4:  # of a single column the gradients of x and the weight are 0
            assert apart(mine, theirs.grad) < 5 * CLOSE
    one = layer_norm.forward(x_there[1:2], weight_there[1:2], bias_there[1:2], 1e-5)
    assert torch.equal(one[0][0], y[1])
    parts = layer_norm.backward(x_there[1:2], weight_there[1:2], one[1], one[2], above_there[1:2])
    assert all(torch.equal(alone[0], together[1]) for alone, together in zip(parts, found, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("name", SHAPES)
def test_norms_on_a_gpu(name: str) -> None:
    check(name, "cuda")


@pytest.mark.kernels
@needs_interpreter
def test_norms_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    for each in ("one", "uneven", "parts"):  # the interpreter is slow
        check(each, "cpu")

"""The gradients written by hand against autograd's of the plain formula; the layer itself is in test_batchnorm."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from tiebreak.layers.one_pass import Normalise

EPS = 1e-5


def plain(x: Tensor, weight: Tensor, bias: Tensor, share: Tensor) -> Tensor:
    axes, shape = [axis for axis in range(x.ndim) if axis != 1], (-1,) + (1,) * (x.ndim - 2)
    centred = x - (x * share).sum(axes).view(shape)
    variance = (centred.square() * share).sum(axes)
    return centred * ((variance + EPS).rsqrt() * weight).view(shape) + bias.view(shape)


@pytest.mark.parametrize("sizes", [(), (5,), (3, 4)])
def test_gradients_of_many_runs_are_those_of_the_formula(sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 4, *sizes, dtype=torch.float64) + 3
    weight, bias, shift = torch.randn(3, 2, 4, dtype=torch.float64)
    real = torch.tensor([1.0, 1, 1, 1, 0, 0], dtype=torch.float64).view(-1, *(1,) * (1 + len(sizes)))
    share = real / (4 * x[0, 0, 0].numel())
    direction = torch.randn(x.shape[1:], dtype=torch.float64)  # padding too may have a gradient

    def ours(x: Tensor, weight: Tensor, bias: Tensor, shift: Tensor) -> Tensor:
        y: Tensor = Normalise.apply(x, weight, bias, shift, share, EPS)[0]  # type: ignore[no-untyped-call]
        return (y * direction).sin().sum()

    def theirs(x: Tensor, weight: Tensor, bias: Tensor, shift: Tensor) -> Tensor:
        return (plain(x, weight, bias, share) * direction).sin().sum()

    found, wanted = (vmap(grad(each, argnums=(0, 1, 2)))(x, weight, bias, shift) for each in (ours, theirs))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_numbers_of_bfloat16_are_summed_in_float32() -> None:
    x = torch.full((4096, 1), 1.0, dtype=torch.bfloat16)
    y, mean, variance = Normalise.apply(  # type: ignore[no-untyped-call]
        x, torch.ones(1), torch.zeros(1), torch.zeros(1), torch.full((4096, 1), 1 / 4096), EPS
    )
    assert y.dtype == torch.bfloat16
    assert mean.item() == 1.0
    assert variance.item() == 0.0

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from tiebreak.errors import TiebreakError
from tiebreak.layers.pixels import attend_pixels, attend_pixels_naive

Form = Callable[[Tensor], Tensor]


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The size of the largest tensor that any operation makes."""

    found = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor):
                self.found = max(self.found, each.numel())
        return result


def make(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    torch.manual_seed(0)
    return torch.rand(shape, dtype=dtype, requires_grad=True)


def value_and_gradient(form: Form, images: Tensor) -> list[Tensor]:
    out = form(images)
    loss = (out * torch.arange(1, out.numel() + 1).view_as(out).sin()).sum()
    return [out, *torch.autograd.grad(loss, images)]


@settings(deadline=None, max_examples=15)
@given(st.sampled_from([(), (1,), (3,), (2, 3)]), st.integers(1, 9), st.integers(1, 9))
def test_both_forms_agree_with_their_gradients(lead: tuple[int, ...], height: int, width: int) -> None:
    images = make(*lead, height, width)
    for one, two in zip(
        *(value_and_gradient(form, images) for form in (attend_pixels, attend_pixels_naive)), strict=True
    ):
        assert one.shape == two.shape == images.shape
        assert float((one - two).detach().abs().max()) < 1e-12


@pytest.mark.parametrize("form", [attend_pixels, attend_pixels_naive])
def test_it_is_the_formula_pixel_by_pixel(form: Form) -> None:
    image = make(3, 5).detach()
    x = image.flatten()
    for i, z in enumerate(form(image).flatten()):
        weights = torch.exp(x[i] * x)
        assert float((z - (weights * x).sum() / weights.sum()).abs()) < 1e-15


def test_only_the_naive_form_holds_the_matrix() -> None:
    images, pixels = make(2, 1, 28, 28, dtype=torch.float32), 28 * 28
    sizes = []
    for form in (attend_pixels, attend_pixels_naive):
        with Largest() as largest:  # type: ignore[no-untyped-call]
            value_and_gradient(form, images)
        sizes.append(largest.found)
    assert sizes[0] <= 4 * images.numel()
    assert sizes[1] == 2 * pixels**2


def test_it_sees_values_and_not_places() -> None:
    image = make(5, 7).detach().mul(4).round()  # a few grey levels
    order = torch.randperm(35)
    out = attend_pixels(image).flatten()
    moved = attend_pixels(image.flatten()[order].view(5, 7)).flatten()
    assert torch.allclose(moved, out[order], rtol=0, atol=1e-14)
    levels = [out[image.flatten() == level].mean() for level in image.unique(sorted=True)]  # type: ignore[no-untyped-call]
    assert levels == sorted(levels)


def test_runs_together_are_each_run_alone_vmapped_and_traced() -> None:
    images = make(3, 2, 5, 3).detach()
    step = vmap(grad(lambda images: attend_pixels(images).sin().sum()))
    alone = torch.stack([grad(lambda images: attend_pixels_naive(images).sin().sum())(run) for run in images])
    for together in (step(images), make_fx(step)(images)(images)):
        assert torch.allclose(together, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", [attend_pixels, attend_pixels_naive])
def test_bad_input_is_named(form: Form) -> None:
    with pytest.raises(TiebreakError, match=r"the pixels are torch\.uint8"):
        form(torch.ones(3, 5, dtype=torch.uint8))
    for shape in ((5,), (0, 5), (2, 5, 0)):
        with pytest.raises(TiebreakError, match="images need the axes"):
            form(torch.ones(shape))

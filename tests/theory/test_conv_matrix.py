from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiebreak.errors import TiebreakError
from tiebreak.theory.conv_matrix import as_matrix, closed_form, output_size

few = settings(deadline=None, max_examples=25)


def pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


def sample(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


@few
@given(pairs(1, 9), pairs(1, 4), pairs(1, 3), pairs(0, 2), pairs(1, 3), st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_the_matrix_is_conv2d_and_its_transpose_the_gradient(
    extra: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    channels: tuple[int, int],
) -> None:
    height, width = (
        max(1, size + d * (k - 1) - 2 * z) for size, d, k, z in zip(extra, dilation, kernel, padding, strict=True)
    )
    torch.manual_seed(0)
    x, weight = sample(channels[0], height, width), sample(channels[1], channels[0], *kernel)
    y = F.conv2d(x[None], weight, None, stride, padding, dilation)[0]
    matrix = as_matrix(weight, (height, width), stride, padding, dilation)
    assert y.shape[1:] == output_size((height, width), kernel, stride=stride, padding=padding, dilation=dilation)
    assert matrix.shape == (y.numel(), x.numel())
    assert torch.allclose(torch.mv(matrix, x.flatten()), y.flatten(), rtol=0, atol=1e-12)
    above = torch.randn_like(y)
    dx, dw = torch.autograd.grad(y, [x, weight], above)
    assert torch.allclose(torch.mv(matrix.t(), above.flatten()), dx.flatten(), rtol=0, atol=1e-12)
    product = torch.sparse.mm(matrix, x.detach().flatten()[:, None]).view_as(y)
    assert torch.allclose(torch.autograd.grad(product, weight, above)[0], dw, rtol=0, atol=1e-12)


@few
@given(pairs(0, 5), pairs(1, 4), pairs(1, 3))
def test_the_closed_index_formula_is_the_matrix(
    extra: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int]
) -> None:
    size = (extra[0] + kernel[0], extra[1] + kernel[1])
    weight = sample(*kernel).detach()
    assert torch.equal(as_matrix(weight, size, stride).to_dense(), closed_form(weight, size, stride))


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 3, 2)])
def test_it_is_coalesced_as_it_says(stride: int, padding: int, dilation: int) -> None:
    matrix = as_matrix(sample(2, 3, 3, 2).detach(), (7, 5), stride, padding, dilation)
    again = torch.sparse_coo_tensor(matrix.indices(), matrix.values(), matrix.shape, check_invariants=True).coalesce()
    assert matrix.is_coalesced()
    assert torch.equal(matrix.indices(), again.indices())
    assert torch.equal(matrix.values(), again.values())


def test_sparse_as_a_convolution_is() -> None:
    matrix = as_matrix(torch.ones(4, 2, 3, 5), (10, 12))
    assert matrix.shape == (4 * 8 * 8, 2 * 10 * 12)
    assert matrix.values().numel() == 4 * 2 * 3 * 5 * 8 * 8


def test_the_slips_of_the_report_show_on_an_oblong_image() -> None:
    size, kernel, stride = (5, 9), (3, 2), 2
    out = output_size(size, kernel, stride=stride)
    assert out == (2, 4)
    assert out[1] != (size[0] - kernel[0]) // stride + 1  # the height's formula for the width
    assert out[1] != size[1] - kernel[1] + 1  # without the stride
    weight = torch.arange(1.0, 7.0).view(kernel)
    matrix = closed_form(weight, size, stride)
    assert matrix.shape == (2 * 4, 5 * 9)  # and not the transpose
    wrong = torch.zeros_like(matrix)
    for i in range(8):
        alpha, beta = i // out[0], i % out[0]  # divides by H'
        for p in range(3):
            for q in range(2):
                row, column = stride * alpha + p, stride * beta + q
                if row < 5 and column < 9:
                    wrong[i, 9 * row + column] = weight[p, q]
    assert not torch.equal(wrong, matrix)


@pytest.mark.parametrize(
    ("size", "kernel", "options", "message"),
    [
        ((5, 5), (6, 1), {}, "a side of 5 pixels is smaller than the 6 that the filter covers"),
        ((5, 5), 3, {"stride": 0}, "the stride must be 1 or more"),
        ((5, 5), 3, {"padding": -1}, "the padding must be 0 or more"),
        ((5, 5), 3, {"dilation": (1, 0)}, r"the dilation must be 1 or more, .* not \(1, 0\)"),
        ((5, 0), 3, {}, "the image size must be 1 or more"),
        ((5, 5, 5), 3, {}, "the image size must be"),
        (5, 0, {}, "the filter size must be 1 or more"),
    ],
)
def test_sizes_that_cannot_be_are_named(size: object, kernel: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(TiebreakError, match=message):
        output_size(size, kernel, **options)  # type: ignore[arg-type]


def test_weights_that_cannot_be_are_named() -> None:
    with pytest.raises(TiebreakError, match=r"the weight is torch\.int64"):
        as_matrix(torch.ones(3, 3, dtype=torch.int64), 5)
    with pytest.raises(
        TiebreakError, match=r"the weight must be \[outputs, channels, height, width\] .* not \[2, 3, 3\]"
    ):
        as_matrix(torch.ones(2, 3, 3), 5)
    with pytest.raises(TiebreakError, match=r"the weight must be \[height, width\], not \[1, 1, 3, 3\]"):
        closed_form(torch.ones(1, 1, 3, 3), 5)
    with pytest.raises(TiebreakError, match=r"not \[1, 1, 0, 3\]"):
        as_matrix(torch.ones(0, 3), 5)

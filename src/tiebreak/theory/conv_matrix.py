"""Convolution as a matrix product: vec(conv(x, w)) = M vec(x).

    y[o, i, j] = sum_{c, p, q} w[o, c, p, q] x[c, s i + d p - z, s j + d q - z]
    H' = floor((H + 2 z - d (P - 1) - 1) / s) + 1,   W' = floor((W + 2 z - d (Q - 1) - 1) / s) + 1

x [C, H, W], w [O, C, P, Q], stride s, padding z, dilation d, y [O, H', W'], M [O H' W', C H W]; vec goes row by row. M
has at most O C P Q H' W' entries that are not 0, and only O C P Q different ones: that is what a convolution saves. Its
transpose takes the gradient with respect to y to that with respect to x.

Without padding and dilation, for one channel, counted from 1 (`closed_form`):

    M(i, j) = w(γ - s (α - 1), δ - s (β - 1)) where that lies in the filter, else 0
    (α, β) = (floor((i - 1) / W') + 1, (i - 1) mod W' + 1),   (γ, δ) likewise from j with W

which for s = 1 is w(γ - α + 1, δ - β + 1). Report R3 has the right idea and three errors: it writes the
height's formula for the width, and drops the stride at its end; it states the size of M transposed, HW x H'W'; and its
index formula divides by H' where row-wise vec must divide by W'. With square images and filters and a stride of 1, only
the second matters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tiebreak.cost.formulas import conv_size
from tiebreak.errors import TiebreakError

Side = int | tuple[int, int]


def output_size(
    image_size: Side, filter_size: Side, *, stride: Side = 1, padding: Side = 0, dilation: Side = 1
) -> tuple[int, int]:
    """(H', W'). A single number stands for both sides, height first.

    >>> output_size((28, 30), (3, 5), stride=2)
    (13, 13)
    """
    sides = zip(
        _pair(image_size, "image size", 1),
        _pair(filter_size, "filter size", 1),
        _pair(stride, "stride", 1),
        _pair(padding, "padding", 0),
        _pair(dilation, "dilation", 1),
        strict=True,
    )
    height, width = (conv_size(size, kernel, stride=s, padding=z, dilation=d) for size, kernel, s, z, d in sides)
    return height, width


def as_matrix(weight: Tensor, image_size: Side, stride: Side = 1, padding: Side = 0, dilation: Side = 1) -> Tensor:
    """M [O H' W', C H W], sparse and coalesced, of a weight [O, C, P, Q], or [P, Q] for one channel to one.

    Gradients flow from M to the weight. The number of entries is that of the products of one image's convolution.
    """
    if weight.ndim == 2:
        weight = weight[None, None]
    _check(weight, 4, "[outputs, channels, height, width] or [height, width]")
    outputs, channels, *kernel = weight.shape
    filter_size = (kernel[0], kernel[1])
    size = output_size(image_size, filter_size, stride=stride, padding=padding, dilation=dilation)
    image, steps = _pair(image_size, "image size", 1), _pair(stride, "stride", 1)
    edges, gaps = _pair(padding, "padding", 0), _pair(dilation, "dilation", 1)
    # The input position of tap p of output i, for each of the two axes: [H', P] and [W', Q].
    y, x = (
        steps[axis] * torch.arange(size[axis], device=weight.device)[:, None]
        + gaps[axis] * torch.arange(filter_size[axis], device=weight.device)
        - edges[axis]
        for axis in range(2)
    )
    # Rows in the order of y [O, H', W'], and in each the columns in the order of x: what coalesced means.
    y, x = y[:, None, :, None], x[None, :, None, :]  # [H', 1, P, 1] and [1, W', 1, Q]
    inside = (y >= 0) & (y < image[0]) & (x >= 0) & (x < image[1])
    full = (outputs, *size, channels, *filter_size)
    first = torch.arange(channels, device=weight.device)[:, None, None] * (image[0] * image[1])
    columns = ((y * image[1] + x)[:, :, None] + first).expand(full)
    rows = torch.arange(outputs * size[0] * size[1], device=weight.device).view(*full[:3], 1, 1, 1).expand(full)
    keep = inside[:, :, None].expand(full)
    return torch.sparse_coo_tensor(
        torch.stack([rows[keep], columns[keep]]),
        weight[:, None, None].expand(full)[keep],
        (outputs * size[0] * size[1], channels * image[0] * image[1]),
        is_coalesced=True,
        check_invariants=False,
    )


def closed_form(weight: Tensor, image_size: Side, stride: Side = 1) -> Tensor:
    """M [H' W', H W], dense, of one filter [P, Q] by the formula as it stands, entry by entry: the reference.

    (α, β) are `above` and `beside`, (γ, δ) are `row` and `column`.
    """
    _check(weight, 2, "[height, width]")
    taps, (height, width), steps = weight.tolist(), _pair(image_size, "image size", 1), _pair(stride, "stride", 1)
    out_height, out_width = output_size((height, width), (len(taps), len(taps[0])), stride=stride)
    matrix = weight.new_zeros(out_height * out_width, height * width)
    for i in range(1, out_height * out_width + 1):
        above, beside = (i - 1) // out_width + 1, (i - 1) % out_width + 1
        for j in range(1, height * width + 1):
            row, column = (j - 1) // width + 1, (j - 1) % width + 1
            p, q = row - steps[0] * (above - 1), column - steps[1] * (beside - 1)
            if 1 <= p <= len(taps) and 1 <= q <= len(taps[0]):
                matrix[i - 1, j - 1] = taps[p - 1][q - 1]
    return matrix


def _pair(side: Side, name: str, least: int) -> tuple[int, int]:
    pair = (side, side) if isinstance(side, int) else tuple(side)
    if len(pair) != 2 or min(pair) < least:
        raise TiebreakError(f"the {name} must be {least} or more, one number or (height, width), not {side}")
    return pair[0], pair[1]


def _check(weight: Tensor, axes: int, wanted: str) -> None:
    if weight.ndim != axes or 0 in weight.shape:
        raise TiebreakError(f"the weight must be {wanted}, not {list(weight.shape)}")
    if not weight.is_floating_point():
        raise TiebreakError(f"the weight is {weight.dtype}; a convolution needs floating-point numbers")

"""Pixel attention: an image as a sequence of its H W pixels, every projection 1.

    P = softmax(x x^T),   Z = P x

x [H W] an image row by row, P [HW, HW], Z [H W]; images [..., H, W], each for itself, no parameters, scores not scaled.
The matrix is what makes it dear: 28 x 28 pixels have 614,656 weights, 224 x 224 have 2.5 billion (10 GB in float32).
Torch's attention kernel never holds it; the time stays quadratic, with D = 1: 2 (HW)^2 multiply-adds.

Pixel i takes part in its own result only through its value: Z_i = f(x_i), f(t) = sum_j x_j e^{t x_j} / sum_j e^{t x_j},
which rises in t. Equal pixels give equal results wherever they are: this attention sees a histogram, not a picture.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from tiebreak.errors import TiebreakError
from tiebreak.layers.attention import attend

ALIGNED = 8  # columns: CUDA's kernels that do not hold the matrix ask for a multiple, and zeros change no score


def attend_pixels(images: Tensor) -> Tensor:
    """Z of each image [..., H, W], in the same shape, without any HW x HW matrix (except under vmap)."""
    _check(images)
    x = images.reshape(-1, 1, images.shape[-2] * images.shape[-1], 1)
    if x.is_cuda:
        x = F.pad(x, (0, ALIGNED - 1))
    return attend(x, x, x, scale=1.0)[..., 0].reshape(images.shape)


def attend_pixels_naive(images: Tensor) -> Tensor:
    """The formula as it stands: the reference."""
    _check(images)
    x = images.flatten(-2).unsqueeze(-1)
    return ((x @ x.mT).softmax(dim=-1) @ x).reshape(images.shape)


def _check(images: Tensor) -> None:
    if not images.is_floating_point():
        raise TiebreakError(f"the pixels are {images.dtype}; attention needs floating-point numbers")
    if images.ndim < 2 or 0 in images.shape[-2:]:
        raise TiebreakError(
            f"images need the axes [..., height, width] with at least one pixel, not {list(images.shape)}"
        )

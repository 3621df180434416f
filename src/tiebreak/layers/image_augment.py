"""Random changes of training images, each a function of (run key, step, example), never of a generator's history.

images [B, C, H, W]; numbers in [0, 1) are hashed from the step's key and the example's place in the data set, as masks
are in `dropout`. So an example is changed in the same way alone, in a cohort, and after a resume.

crop    a window whose side is a share s in [least, 1) of the image's, resized to the whole image (bilinear)
flip    left to right, every second image
shift   by -most to most pixels along each side; what comes in is 0
cutout  a square of zeros around a random pixel, cut off at the border (DeVries and Taylor, 2017)
mixup   l x_i + (1 - l) x_j with l from Beta(alpha, alpha), j the next example of the batch (Zhang et al., 2018)

Unlike in the paper of mixup, l is drawn for each example, not for each batch.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tiebreak.layers.dropout import GOLDEN, mix

QUANTILES = 4096  # of the Beta distribution, which l is chosen from


def uniforms(key: Tensor, examples: Tensor, count: int) -> list[Tensor]:
    """`count` numbers in [0, 1) for each example [B]; `key` is one entry of `dropout.step_keys`."""
    bits = mix(mix(examples.to(torch.int32)) ^ key)
    draws = [mix(bits ^ ((number * GOLDEN + 2**31) % 2**32 - 2**31)) for number in range(1, count + 1)]
    return [((each >> 8) & 0xFFFFFF).to(torch.float32).mul(2.0**-24) for each in draws]


def crop(images: Tensor, least: float, drawn: list[Tensor]) -> Tensor:
    """A window of each image, resized; `drawn`: its side, and its place along either side."""
    side = least + (1 - least) * drawn[0]
    for axis, place in ((2, drawn[1]), (3, drawn[2])):
        last = images.shape[axis] - 1
        at = torch.arange(last + 1, device=images.device)
        source = (place * (1 - side) * last)[:, None] + side[:, None] * at
        low = source.floor().clamp(0, last)
        share = (source - low).to(images.dtype)
        before, after = (_take(images, each.long(), axis) for each in (low, (low + 1).clamp(max=last)))
        images = torch.lerp(before, after, _along(share, axis))
    return images


def flip(images: Tensor, drawn: list[Tensor]) -> Tensor:
    """Every second image, left to right."""
    return torch.where(drawn[0][:, None, None, None] < 0.5, images.flip(3), images)


def shift(images: Tensor, most: int, drawn: list[Tensor]) -> Tensor:
    """Each image moved by up to `most` pixels along either side."""
    for axis, number in ((2, drawn[0]), (3, drawn[1])):
        size = images.shape[axis]
        at = torch.arange(size, device=images.device)
        source = at - (_below(number, 2 * most + 1) - most)[:, None]
        inside = (source >= 0) & (source < size)
        images = _take(images, source.clamp(0, size - 1), axis) * _along(inside.to(images.dtype), axis)
    return images


def cutout(images: Tensor, side: int, drawn: list[Tensor]) -> Tensor:
    """Each image with a square of zeros."""
    rows, columns = (_within(images.shape[axis], number, side) for axis, number in ((2, drawn[0]), (3, drawn[1])))
    return images.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0.0)


def partners(weights: Tensor) -> Tensor:
    """The row that each row of a batch is mixed with: the next one, or the first where the next one is padding."""
    following = torch.arange(1, len(weights) + 1, device=weights.device) % len(weights)
    return torch.where(weights[following] > 0, following, torch.zeros_like(following))


def mixing(alpha: float, drawn: Tensor, dtype: torch.dtype) -> Tensor:
    """Shares [B] from Beta(alpha, alpha)."""
    table = _beta_quantiles(alpha, dtype, drawn.device)
    return table[_below(drawn, QUANTILES)]


@lru_cache(maxsize=8)
def _beta_quantiles(alpha: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    import numpy as np
    from scipy.special import betaincinv

    places = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return torch.from_numpy(betaincinv(alpha, alpha, places)).to(device=device, dtype=dtype)


def _below(drawn: Tensor, count: int) -> Tensor:
    """A whole number from 0 to count - 1. The product may round up to count."""
    return (drawn * count).long().clamp(max=count - 1)


def _within(size: int, drawn: Tensor, side: int) -> Tensor:
    """Which places [B, size] lie in a stretch of `side` around a random one."""
    start = (_below(drawn, size) - side // 2)[:, None]
    at = torch.arange(size, device=drawn.device)
    return (at >= start) & (at < start + side)


def _take(images: Tensor, source: Tensor, axis: int) -> Tensor:
    """Rows (axis 2) or columns (axis 3) of each image, at the places `source` [B, size]."""
    return images.gather(axis, _along(source, axis).expand(images.shape))


def _along(values: Tensor, axis: int) -> Tensor:
    """values [B, size] along an axis of images."""
    return values[:, None, :, None] if axis == 2 else values[:, None, None, :]

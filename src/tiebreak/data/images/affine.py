"""Moved, turned and rescaled images: how a trained network is disturbed when it is evaluated.

Images are uint8 [N, H, W] or [N, H, W, C]; what comes in from outside the picture is 0. Turning and rescaling are about
the centre, and bilinear: the new pixel at (y, x) is the weighted mean of the four old pixels around the point

    (y', x') = c + R (y - c_y, x - c_x) / scale,      c = ((H - 1) / 2, (W - 1) / 2),

where pixels beyond the edge count as 0, rounded to the nearest whole number (halves to the even one).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 24  # of pixels that are moved at once: their floating-point copies take 8 times as much

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Move:
    """First turned by `rotate` degrees (counter-clockwise) and rescaled, then moved right by `shift` pixels."""

    shift: int = 0
    rotate: float = 0.0
    scale: float = 1.0

    @property
    def label(self) -> str:
        """How tables and figures call it."""
        parts = [
            f"shift {self.shift:+d}" if self.shift else "",
            f"rotate {self.rotate:+g}°" if self.rotate else "",
            f"scale {self.scale:g}" if self.scale != 1 else "",
        ]
        return ", ".join(filter(None, parts)) or "unmoved"


DISTURBANCES: tuple[Move, ...] = (
    Move(shift=-2),
    Move(shift=2),
    Move(rotate=-15.0),
    Move(rotate=15.0),
    Move(scale=0.85),
    Move(scale=1.15),
)


def move(images: Pixels, how: Move) -> Pixels:
    """A moved copy of the images; turning and rescaling are one resampling."""
    return shift(_resampled(images, how.rotate, how.scale), how.shift)


def shift(images: Pixels, pixels: int) -> Pixels:
    """Images moved right by `pixels` (left when negative)."""
    moved = np.zeros_like(images)
    width = images.shape[2]
    if pixels >= 0:
        moved[:, :, pixels:] = images[:, :, : max(width - pixels, 0)]
    else:
        moved[:, :, :pixels] = images[:, :, -pixels:]
    return moved


def _resampled(images: Pixels, degrees: float, factor: float) -> Pixels:
    """The images turned and rescaled; the very same array where there is nothing to do."""
    if not (factor > 0 and math.isfinite(factor) and math.isfinite(degrees)):
        raise ValueError(f"cannot turn images by {degrees} degrees and scale them by {factor}")
    if degrees == 0 and factor == 1:
        return images
    height, width = images.shape[1:3]
    taps = list(_taps(height, width, degrees, factor))
    old = images.reshape(len(images), height * width, math.prod(images.shape[3:]))
    new = np.empty_like(old)
    step = max(1, BLOCK_BYTES // max(1, old[:1].size))
    for start in range(0, len(old), step):
        block = old[start : start + step]
        new[start : start + step] = np.rint(sum(weights[:, None] * block[:, places] for places, weights in taps))
    return new.reshape(images.shape)


def _taps(
    height: int, width: int, degrees: float, factor: float
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """For each of the four old pixels that make a new one: its place [H·W] in the flattened image, and its weight."""
    down, right = np.meshgrid(
        np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2, indexing="ij"
    )  # of each new pixel, from the centre
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    row = np.clip((right * sin + down * cos) / factor + (height - 1) / 2, -2, height + 1).ravel()
    column = np.clip((right * cos - down * sin) / factor + (width - 1) / 2, -2, width + 1).ravel()
    top, left = np.floor(row).astype(np.int64), np.floor(column).astype(np.int64)
    for y, row_weight in ((top, top + 1 - row), (top + 1, row - top)):
        for x, column_weight in ((left, left + 1 - column), (left + 1, column - left)):
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            yield np.where(inside, y * width + x, 0), np.where(inside, row_weight * column_weight, 0.0)

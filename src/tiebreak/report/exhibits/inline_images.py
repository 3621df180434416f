"""Small images inside the page: arrays as PNG in data: addresses, made smaller where they would make the page heavy."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]  # [H, W] grey, or [H, W, C]

SIDES = (96, 64, 48, 32, 24, 16, 12, 8)  # px, the longest side of a picture: the first with which all of them fit
BEFORE = "data:image/png;base64,"


def addresses(images: Sequence[Pixels], *, budget: int) -> list[str]:
    """Every image as a data: address, all of them together at most `budget` characters if that can be."""
    found: list[str] = []
    for side in SIDES:
        found = [address(image, side) for image in images]
        if sum(map(len, found)) <= budget:
            break
    return found


def address(image: Pixels, side: int) -> str:
    """One image as a data: address: never enlarged, made smaller where a side is longer than `side` pixels."""
    from PIL import Image

    picture = Image.fromarray(_drawable(image))
    longest = max(picture.size)
    if longest > side:
        size = (max(1, round(picture.width * side / longest)), max(1, round(picture.height * side / longest)))
        picture = picture.resize(size, Image.Resampling.BOX)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return BEFORE + base64.b64encode(buffer.getvalue()).decode("ascii")


def brightness(maps: npt.NDArray[Any]) -> Pixels:
    """Maps [m, h, w] as grey values on one scale: black is 0 or less, white the largest value of all of them."""
    values = np.maximum(np.nan_to_num(maps.astype(np.float64), posinf=0.0, neginf=0.0), 0.0)
    largest = float(values.max(initial=0.0))
    return np.round(255 * values / (largest or 1.0)).astype(np.uint8)


def _drawable(image: Pixels) -> Pixels:
    """[H, W], or [H, W, 3]; of other channels the first is shown."""
    if image.ndim == 2:
        return np.ascontiguousarray(image)
    return np.ascontiguousarray(image[..., :3] if image.shape[-1] >= 3 else image[..., 0])

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from support.sample_exhibits import images
from tiebreak.report.exhibits import inline_images


def opened(address: str) -> Image.Image:
    assert address.startswith(inline_images.BEFORE)
    return Image.open(io.BytesIO(base64.b64decode(address.removeprefix(inline_images.BEFORE), validate=True)))


@pytest.mark.parametrize(
    ("shape", "mode"),
    [((9, 7), "L"), ((9, 7, 1), "L"), ((9, 7, 3), "RGB"), ((9, 7, 4), "RGB"), ((9, 7, 2), "L")],
)
def test_grey_and_coloured_images_keep_their_pixels(shape: tuple[int, ...], mode: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    picture = opened(inline_images.address(image, 96))
    assert (picture.size, picture.mode) == ((7, 9), mode)
    kept = image if image.ndim == 2 else image[..., :3] if mode == "RGB" else image[..., 0]
    assert np.array_equal(np.asarray(picture), kept)


def test_large_images_are_made_smaller_and_small_ones_never_larger() -> None:
    assert opened(inline_images.address(images(1, (300, 150))[0], 96)).size == (48, 96)
    assert opened(inline_images.address(images(1, (300, 1))[0], 96)).size == (1, 96)
    assert opened(inline_images.address(images(1, (20, 20))[0], 96)).size == (20, 20)


def test_many_pictures_share_a_budget() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (20, 96, 96, 3), dtype=np.uint8)
    addresses = inline_images.addresses(list(noise), budget=60_000)
    assert sum(map(len, addresses)) <= 60_000
    assert len({opened(address).size for address in addresses}) == 1
    assert opened(inline_images.addresses(list(noise[:1]), budget=60_000)[0]).size == (96, 96)
    assert inline_images.addresses([], budget=10) == []


def test_the_maps_of_an_image_have_one_scale() -> None:
    maps = np.array([[[0.0, 1.0]], [[2.0, -3.0]]], np.float16)
    assert inline_images.brightness(maps).tolist() == [[[0, 128]], [[255, 0]]]
    assert not inline_images.brightness(np.zeros((2, 3, 3), np.float16)).any()
    broken = np.array([[[np.inf, np.nan, 4.0]]], np.float16)
    assert inline_images.brightness(broken).tolist() == [[[0, 0, 255]]]


def test_the_same_image_has_the_same_address() -> None:
    image = images(1, (28, 28))[0]
    assert inline_images.address(image, 96) == inline_images.address(image.copy(), 96)

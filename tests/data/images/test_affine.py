from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import ndimage

from tiebreak.data.images import affine
from tiebreak.data.images.affine import DISTURBANCES, Move, move, shift

Pixels = NDArray[np.uint8]
IMAGES = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=3, max_dims=4, max_side=6))


def noise(*shape: int) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def rotate(images: Pixels, degrees: float) -> Pixels:
    return move(images, Move(rotate=degrees))


def rescale(images: Pixels, factor: float) -> Pixels:
    return move(images, Move(scale=factor))


def by_scipy(images: Pixels, degrees: float, factor: float) -> NDArray[np.float64]:
    """The naive twin: image by image and channel by channel, by scipy's general affine transformation."""
    angle = np.deg2rad(degrees)
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) / factor
    centre = (np.array(images.shape[1:3]) - 1) / 2
    moved = np.empty(images.shape)
    for index in np.ndindex(len(images), *images.shape[3:]):
        place = (index[0], slice(None), slice(None), *index[1:])
        moved[place] = ndimage.affine_transform(
            images[place].astype(float), matrix, offset=centre - matrix @ centre, order=1, mode="grid-constant"
        )
    return moved


@given(images=IMAGES, pixels=st.integers(-8, 8))
@settings(deadline=None)
def test_shift_moves_every_pixel(images: Pixels, pixels: int) -> None:
    moved = shift(images, pixels)
    assert (moved.shape, moved.dtype) == (images.shape, images.dtype)
    width = images.shape[2]
    for column in range(width):
        origin = column - pixels
        expected = images[:, :, origin] if 0 <= origin < width else np.zeros_like(images[:, :, 0])
        np.testing.assert_array_equal(moved[:, :, column], expected)


@given(images=IMAGES, degrees=st.floats(-720, 720), factor=st.floats(0.2, 5))
@settings(deadline=None)
def test_turning_and_rescaling_are_those_of_scipy(images: Pixels, degrees: float, factor: float) -> None:
    for moved, twin in (
        (rotate(images, degrees), by_scipy(images, degrees, 1)),
        (rescale(images, factor), by_scipy(images, 0, factor)),
        (move(images, Move(rotate=degrees, scale=factor)), by_scipy(images, degrees, factor)),
    ):
        assert (moved.shape, moved.dtype) == (images.shape, images.dtype)
        assert np.abs(moved - twin).max() <= 0.5 + 1e-6  # nothing but the rounding


@pytest.mark.parametrize("shape", [(7, 28, 28), (3, 9, 12, 3), (2, 1, 1), (0, 5, 5), (0, 5, 5, 3), (1, 5, 4, 1)])
def test_no_move_is_bit_equal_and_a_copy(shape: tuple[int, ...]) -> None:
    images = noise(*shape)
    for moved in (shift(images, 0), rotate(images, 0), rescale(images, 1), move(images, Move())):
        np.testing.assert_array_equal(moved, images, strict=True)
        assert not np.shares_memory(moved, images)


@pytest.mark.parametrize("side", [1, 6, 7, 28])
def test_quarter_turns_are_exact_and_counter_clockwise(side: int) -> None:
    images = noise(4, side, side)
    for turns in range(-4, 5):
        np.testing.assert_array_equal(rotate(images, 90 * turns), np.rot90(images, turns, axes=(1, 2)))


def test_rescaling_by_two_spreads_the_middle() -> None:
    image = np.zeros((1, 5, 5), np.uint8)
    image[0, 2, 2] = 100
    expected = [0, 50, 100, 50, 0]
    assert rescale(image, 2)[0, 2].tolist() == expected
    assert rescale(image, 2)[0, :, 2].tolist() == expected
    assert rescale(np.full((1, 8, 8), 200, np.uint8), 0.5).sum() == 200 * 16


@pytest.mark.parametrize("images", [noise(0, 6, 6), noise(5, 6, 4, 3)], ids=["none", "colour"])
def test_every_disturbance_keeps_shape_and_type(images: Pixels) -> None:
    for how in DISTURBANCES:
        moved = move(images, how)
        assert (moved.shape, moved.dtype) == (images.shape, images.dtype)
        assert len(images) == 0 or (moved != images).any()


def test_images_do_not_depend_on_their_company(monkeypatch: pytest.MonkeyPatch) -> None:
    images = noise(9, 8, 8)
    together = rotate(images, 15)
    monkeypatch.setattr(affine, "BLOCK_BYTES", 2 * 64)  # two images at once
    np.testing.assert_array_equal(rotate(images, 15), together)
    np.testing.assert_array_equal(np.concatenate([rotate(images[i : i + 1], 15) for i in range(9)]), together)


def test_the_order_is_turn_then_shift() -> None:
    images = noise(3, 10, 10)
    expected = shift(rotate(images, 15), 2)
    np.testing.assert_array_equal(move(images, Move(shift=2, rotate=15)), expected)


def test_disturbances_are_those_of_the_study() -> None:
    assert [how.label for how in DISTURBANCES] == [
        "shift -2", "shift +2", "rotate -15°", "rotate +15°", "scale 0.85", "scale 1.15"
    ]  # fmt: skip
    assert Move().label == "unmoved"
    assert Move(shift=1, rotate=2.5, scale=2).label == "shift +1, rotate +2.5°, scale 2"


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf")])
def test_an_impossible_factor(factor: float) -> None:
    with pytest.raises(ValueError, match="cannot turn images"):
        rescale(noise(1, 3, 3), factor)
    with pytest.raises(ValueError, match="cannot turn images"):
        rotate(noise(1, 3, 3), float("nan"))


def test_an_extreme_factor_is_harmless() -> None:
    assert rescale(noise(1, 4, 4), 1e-300).max() == 0
    assert len(np.unique(rescale(noise(1, 5, 5), 1e300))) == 1  # the pixel in the middle

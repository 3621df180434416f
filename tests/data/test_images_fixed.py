from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tiebreak.data.images import AS_REPORTED, as_reported_test, pixel_permutation, shift, stratified
from tiebreak.errors import TiebreakError


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    shares=st.tuples(st.floats(0, 0.5), st.floats(0, 0.5)),
    key=st.integers(0, 2**63 - 1),
)
@settings(deadline=None)
@example(counts=[1], shares=(0.0, 0.0), key=0)
def test_stratified_parts(counts: list[int], shares: tuple[float, float], key: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    first, second = (int(share * len(labels)) for share in shares)
    parts = stratified(labels, (first, second, len(labels) - first - second), key)
    assert [len(part) for part in parts] == [first, second, len(labels) - first - second]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert all((np.diff(part) > 0).all() for part in parts)
    exact = np.array(counts) * first / len(labels)
    assert np.abs(np.bincount(labels[parts[0]], minlength=len(counts)) - exact).max() < 1


@given(order=st.permutations(list(range(4)) * 3))
@settings(deadline=None)
def test_as_reported_test_takes_the_first_of_each_class(order: list[int]) -> None:
    labels = np.concatenate([np.repeat(order, 100), np.array([3, 2, 1, 0])])
    indices = as_reported_test(labels)
    assert (np.diff(indices) > 0).all()
    for label, wanted in enumerate(AS_REPORTED):
        assert indices[labels[indices] == label].tolist() == np.flatnonzero(labels == label)[:wanted].tolist()


def test_as_reported_test_needs_its_images() -> None:
    labels = np.repeat(np.arange(4), AS_REPORTED)
    assert as_reported_test(labels).tolist() == list(range(529))
    with pytest.raises(TiebreakError, match="need 250 of class 3; this test split has 249"):
        as_reported_test(labels[:-1])


@given(images=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=3, max_dims=4, max_side=6)), pixels=st.integers(-8, 8))
@settings(deadline=None)
def test_shift_moves_every_pixel(images: NDArray[np.uint8], pixels: int) -> None:
    moved = shift(images, pixels)
    assert (moved.shape, moved.dtype) == (images.shape, images.dtype)
    width = images.shape[2]
    for column in range(width):
        origin = column - pixels
        expected = images[:, :, origin] if 0 <= origin < width else np.zeros_like(images[:, :, 0])
        np.testing.assert_array_equal(moved[:, :, column], expected)


@given(height=st.integers(1, 30), width=st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_pixel_permutation_is_fixed_and_complete(height: int, width: int) -> None:
    permutation = pixel_permutation(height, width)
    assert sorted(permutation.tolist()) == list(range(height * width))
    np.testing.assert_array_equal(permutation, pixel_permutation(height, width))
    image = np.arange(height * width)
    np.testing.assert_array_equal(image[permutation][np.argsort(permutation)], image)


def test_pixel_permutation_never_moves() -> None:
    assert pixel_permutation(28, 28)[:5].tolist() == [661, 271, 290, 737, 653]


def test_stratified_part_of_nothing() -> None:
    whole, nothing = stratified(np.array([0, 1, 1]), (3, 0), key=1)
    assert whole.tolist() == [0, 1, 2]
    assert nothing.tolist() == []

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.data.images.image_data import AS_REPORTED, as_reported_test, pixel_permutation
from tiebreak.errors import TiebreakError


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

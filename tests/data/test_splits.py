from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tiebreak.data.splits import Split, permutation, stratified, with_validation
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


def test_stratified_part_of_nothing() -> None:
    whole, nothing = stratified(np.array([0, 1, 1]), (3, 0), key=1)
    assert whole.tolist() == [0, 1, 2]
    assert nothing.tolist() == []


def test_validation_is_a_sixth_of_the_training_images() -> None:
    whole = Split(np.arange(60, dtype=np.uint8).reshape(60, 1, 1), np.arange(60) % 2)
    test = whole.take(np.array([1, 3]))
    splits = with_validation("toy", {"train": whole, "test": test}, "toy.npz: labels")
    assert {name: len(split.labels) for name, split in splits.items()} == {"train": 50, "val": 10, "test": 2}
    assert np.bincount(splits["val"].labels).tolist() == [5, 5]
    again = with_validation("other", {"train": whole, "test": test}, "")
    assert splits["val"].images.ravel().tolist() != again["val"].images.ravel().tolist()
    with pytest.raises(TiebreakError, match=r"toy\.npz: labels: 2 training images are too few"):
        with_validation("toy", {"train": test, "test": test}, "toy.npz: labels")


def test_a_permutation_never_moves() -> None:
    assert permutation(5, 1).tolist() == [0, 3, 4, 1, 2]

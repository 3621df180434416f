from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tiebreak.data.splits import LEAST, SPLITS, Split, permutation, split_tenths, stratified, tenths, with_validation
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream


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
    with pytest.raises(TiebreakError, match=r"toy\.npz: labels: 2 "):
        with_validation("toy", {"train": test, "test": test}, "toy.npz: labels")


def test_a_permutation_never_moves() -> None:
    assert permutation(5, 1).tolist() == [0, 3, 4, 1, 2]


def digest(splits: object) -> str:
    return hashlib.sha256(repr(splits).encode()).hexdigest()


@pytest.mark.parametrize(
    ("name", "pinned"),
    [
        ("pairs", "5e0d8bab30a9193f2597d6efad68330075ae12fe1f3acf77ba0e78f140078e7c"),
        ("speech", "4c762a45fa66a668818a353fda2b894812d5079e51b2b57dc1ba2d5259940209"),
    ],
)
def test_the_split_of_a_users_data_never_moves(name: str, pinned: str) -> None:
    """Pinned when pairs and speech each had a split of their own."""
    splits = split_tenths(range(37), stream(0, "split", name), "numbers")
    assert digest({split: list(splits[split]) for split in sorted(splits)}) == pinned


def test_the_split_of_mnist5k_never_moves() -> None:
    splits = tenths(np.arange(103) % 7, stream(0, "split", "mnist5k"))
    pinned = "3c820e9aa0f272bfbb0216bd67015e442f244c872fd0c389b58aad7bf94e9e41"
    assert digest({split: splits[split].tolist() for split in sorted(splits)}) == pinned


@given(count=st.integers(0, 300), key=st.integers(0, 2**63 - 1))
@settings(deadline=None)
def test_a_tenth_each_is_held_out_and_nothing_is_lost(count: int, key: int) -> None:
    items = [f"item {index}" for index in range(count)]
    if count < LEAST:
        with pytest.raises(TiebreakError, match=f"things: {count}, too few"):
            split_tenths(items, key, "things")
        return
    splits = split_tenths(items, key, "things")
    assert list(splits) == list(SPLITS)
    assert len(splits["val"]) == len(splits["test"]) == count // 10
    assert sorted(item for part in splits.values() for item in part) == sorted(items)
    places = {item: index for index, item in enumerate(items)}
    for part in splits.values():
        assert [places[item] for item in part] == sorted(places[item] for item in part)


@given(labels=st.lists(st.integers(0, 4), min_size=10, max_size=200), key=st.integers(0, 2**63 - 1))
@settings(deadline=None)
def test_tenths_have_the_classes_in_their_shares(labels: list[int], key: int) -> None:
    splits = tenths(np.array(labels), key)
    counts = np.bincount(labels, minlength=5)
    exact = counts * (len(labels) // 10) / len(labels)
    assert np.abs(np.bincount(np.array(labels)[splits["val"]], minlength=5) - exact).max() < 1

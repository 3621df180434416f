"""Which examples are for training, validation and testing: a function of their labels and of a named stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError
from tiebreak.streams import stream

SPLITS = ("train", "val", "test")
LEAST = 10  # examples that can be split 80/10/10

Item = TypeVar("Item")


def counts_by_split(counts: Iterable[int]) -> str:
    """How many examples each split has, as text.

    >>> counts_by_split([4000, 500, 500])
    '4,000 train, 500 val, 500 test'
    """
    return ", ".join(f"{count:,} {split}" for split, count in zip(SPLITS, counts, strict=True))


class Split(NamedTuple):
    """Images [N, H, W] or [N, H, W, C] and labels [N]."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def take(self, indices: NDArray[np.int64]) -> Split:
        """The images and labels at `indices`."""
        return Split(self.images[indices], self.labels[indices])


def with_validation(name: str, splits: Mapping[str, Split], where: str) -> dict[str, Split]:
    """A sixth of the training images (MNIST: 10,000 of 60,000), in the shares of the classes, becomes validation."""
    whole = splits["train"]
    count = len(whole.labels)
    if count < 6:
        raise TiebreakError(f"{where}: {count} training images are too few to hold out a sixth for validation")
    val, train = stratified(whole.labels, (count // 6, count - count // 6), stream(0, "split", name))
    return {"train": whole.take(train), "val": whole.take(val), "test": splits["test"]}


def tenths(labels: NDArray[np.int64], key: int) -> dict[str, NDArray[np.int64]]:
    """The 80/10/10 split, as ascending indices: a tenth for validation and a tenth for testing, stratified by label."""
    tenth = len(labels) // 10
    val, test, train = stratified(labels, (tenth, tenth, len(labels) - 2 * tenth), key)
    return {"train": train, "val": val, "test": test}


def split_tenths(items: Sequence[Item], key: int, what: str) -> dict[str, tuple[Item, ...]]:
    """The items split 80/10/10, each split in the order given; `what` and where they are, for the message: too few."""
    if len(items) < LEAST:
        raise TiebreakError(
            f"{what}: {len(items)}, too few to be split 80/10/10; at least {LEAST} are needed, or train, val and test "
            "of your own"
        )
    chosen = tenths(np.zeros(len(items), np.int64), key)
    return {split: tuple(items[index] for index in chosen[split]) for split in SPLITS}


def permutation(length: int, key: int) -> NDArray[np.int64]:
    """The permutation of 0 to length - 1 that belongs to a stream's key."""
    return np.random.Generator(np.random.Philox(key)).permutation(length)


def stratified(labels: NDArray[np.int64], sizes: Sequence[int], key: int) -> list[NDArray[np.int64]]:
    """Disjoint parts of the given sizes, as ascending indices, each with the classes in the shares of what is left."""
    order = permutation(len(labels), key)
    members = [order[labels[order] == label] for label in np.unique(labels)]
    parts = []
    for size in sizes:
        quotas = _quotas(np.array([len(member) for member in members]), size)
        taken = [member[:quota] for member, quota in zip(members, quotas, strict=True)]
        members = [member[quota:] for member, quota in zip(members, quotas, strict=True)]
        parts.append(np.sort(np.concatenate(taken)))
    return parts


def _quotas(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """`size` shared out in proportion to `counts`, in whole numbers: the largest remainders are rounded up."""
    shares, remainders = np.divmod(counts * size, max(counts.sum(), 1))
    shares[np.argsort(-remainders, kind="stable")[: size - shares.sum()]] += 1
    return shares

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tiebreak.results.record import CheckpointRecord, EpochRecord
from tiebreak.results.row_queries import epoch_numbers
from tiebreak.results.store import Store


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path)) as store:
        yield store


def saved(identity: str, epoch: int) -> CheckpointRecord:
    return CheckpointRecord(identity=identity, trajectory="t", epoch=epoch, file=f"{identity}-{epoch}", sha256="")


def test_of_each_run_the_last_checkpoints_up_to_its_newest_stay(store: Store) -> None:
    for identity, epochs in (("a", (1, 2, 3, 4, 9)), ("b", (1, 2)), ("c", (1, 2, 3))):
        for epoch in epochs:
            store.add_checkpoint(saved(identity, epoch))
    found = store.superfluous_checkpoints([saved("a", 4), saved("b", 2)], 2)
    assert sorted((each.identity, each.epoch) for each in found) == [("a", 1), ("a", 2)]  # 9 is of another attempt
    assert store.superfluous_checkpoints([], 2) == []


def test_a_damaged_checkpoint_is_not_one_to_delete(store: Store) -> None:
    for epoch in (1, 2, 3, 4):
        store.add_checkpoint(saved("a", epoch))
    store._connection.execute("UPDATE checkpoints SET file = '../victim' WHERE epoch = 1")
    assert [each.epoch for each in store.superfluous_checkpoints([saved("a", 4)], 2)] == [2]


def test_epochs_are_counted_with_their_gaps(store: Store) -> None:
    for trajectory, epochs in (("whole", (1, 2, 3)), ("gap", (1, 3)), ("late", (2, 3))):
        for epoch in epochs:
            store.add_epoch(EpochRecord(trajectory=trajectory, epoch=epoch, metrics={}, seconds={}))
    found = {name: list(numbers) for name, numbers in epoch_numbers(store._rows).items()}
    assert found == {"whole": [1, 2, 3], "gap": [1, 3], "late": [2, 3]}

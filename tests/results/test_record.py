from __future__ import annotations

import dataclasses

import pytest

from support.hand_made import CHECKPOINT, CHOICE, EPOCH, EXHIBIT, FINAL, RUN


@pytest.mark.parametrize(
    "record", [EPOCH, RUN, FINAL, EXHIBIT, CHECKPOINT, CHOICE], ids=lambda record: type(record).__name__
)
def test_a_record_cannot_be_changed(record: object) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.epoch = 2  # type: ignore[attr-defined]

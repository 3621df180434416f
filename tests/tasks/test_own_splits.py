from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from tiebreak.errors import TiebreakError
from tiebreak.tasks.own_splits import own_data

X = torch.arange(20.0)


def test_one_dict_is_split_the_same_each_time() -> None:
    data, again = (own_data("mine", {"x": X, "y": X.long()}) for _ in range(2))
    assert data.sizes == {"train": 16, "val": 2, "test": 2}
    assert sorted(torch.cat([data.splits[each]["x"] for each in data.splits]).tolist()) == X.tolist()
    assert data.checksum == again.checksum
    for split in data.splits.values():
        assert torch.equal(split["x"].long(), split["y"])  # rows stay together
    assert data.description()[0].startswith("mine: 16 train, 2 val, 2 test; x float32 [], y int64 []; sha256 ")


def test_given_splits_stay() -> None:
    given = {split: {"x": X[:count]} for split, count in (("train", 5), ("val", 2), ("test", 3))}
    assert own_data("mine", given).sizes == {"train": 5, "val": 2, "test": 3}


@pytest.mark.parametrize("change", ["value", "order", "type", "name"])
def test_the_checksum_covers_everything(change: str) -> None:
    before = own_data("mine", {"x": X, "y": X}).checksum
    other = X.clone()
    other[3] = -1
    changed = {
        "value": {"x": other, "y": X},
        "order": {"x": X.flip(0), "y": X},
        "type": {"x": X.long(), "y": X},
        "name": {"x": X, "z": X},
    }
    assert own_data("mine", changed[change]).checksum != before


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.arange(20.0), torch.float32),
        (np.arange(20, dtype=">i4"), torch.int64),
        (np.arange(20, dtype=np.uint8), torch.uint8),
        (np.arange(20) > 3, torch.bool),
        (X.double(), torch.float32),
        (X.half(), torch.float32),
        (X.to(torch.int16), torch.int64),
        (X.clone().requires_grad_(), torch.float32),
        (np.arange(40.0).reshape(20, 2)[:, ::-1], torch.float32),
    ],
)
def test_types_that_networks_expect(given: Any, wanted: torch.dtype) -> None:
    found = own_data("mine", {"x": given}).splits["train"]["x"]
    assert found.dtype == wanted
    assert not found.requires_grad
    assert found.is_contiguous()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "should return a dict of train, val and test, or of tensors, not NoneType"),
        ({}, "should return a dict"),
        ((X, X), "not tuple"),
        ({"x": [1, 2, 3]}, "'x': should be a tensor or a NumPy array of real numbers, not list"),
        ({"x": np.array(["a"] * 20)}, "not ndarray of <U1"),
        ({"x": X.to(torch.complex64)}, "not Tensor of torch.complex64"),
        ({"x": X.to_sparse()}, "not Tensor"),
        ({"x": torch.tensor(1.0)}, "'x': a single number"),
        ({3: X}, "3: the name of a tensor should be a text"),
        ({"x": X, "y": X[:7]}, "different numbers of examples: x 20, y 7"),
        ({"x": X[:5]}, "5, too few to be split 80/10/10"),
        ({"x": X / 0}, "'x': NaN or infinite in example 0"),
        ({"train": {"x": X}, "test": {"x": X}}, "returned the splits train, test; should be train, val and test"),
        ({"train": {"x": X}, "val": {"x": X}, "test": X}, "test: should be a dict of tensors, not Tensor"),
        ({"train": {"x": X}, "val": {"x": X}, "test": {"x": X[:0]}}, "test: no examples"),
        (
            {"train": {"x": X}, "val": {"x": X}, "test": {"y": X}},
            "test holds y float32 [], but train holds x float32 []",
        ),
        (
            {"train": {"x": torch.ones(3, 2)}, "val": {"x": torch.ones(3, 4)}, "test": {"x": torch.ones(3, 2)}},
            "val holds x float32 [4], but train holds x float32 [2]",
        ),
    ],
)
def test_what_cannot_be_trained_on_is_refused(given: Any, message: str) -> None:
    with pytest.raises(TiebreakError, match=re.escape(message)):
        own_data("mine", given)

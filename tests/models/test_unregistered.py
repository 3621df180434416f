from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from tiebreak.layers.dropout import Dropout
from tiebreak.models.unregistered import changed_attribute, same, unregistered


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count, self.name = 3, "a"
        self.table, self.array = torch.arange(3), np.ones(2)
        self.nested = {"a": [1, (2.0, torch.ones(1))]}
        self.function = len
        self.drop = Dropout(0.1)
        self.register_buffer("known", torch.ones(2))
        self.weight = nn.Parameter(torch.ones(2))


def test_numbers_texts_and_arrays_are_found_and_registered_tensors_are_not() -> None:
    found = unregistered(nn.Sequential(Holder()))
    assert {"0.count", "0.name", "0.table", "0.array", "0.nested['a'][0]", "0.nested['a'][1][1]"} <= found.keys()
    assert not any(word in name for name in found for word in ("known", "weight", "drop", "function", "training"))


def test_a_change_is_named() -> None:
    holder = Holder()
    before = unregistered(holder)
    assert changed_attribute(before, unregistered(holder)) == ""
    holder.table += 1
    assert changed_attribute(before, unregistered(holder)) == "table"
    before = unregistered(holder)
    holder.nested["a"][0] = 2
    assert changed_attribute(before, unregistered(holder)) == "nested['a'][0]"
    before = unregistered(holder)
    setattr(holder, "new", 1)  # noqa: B010
    assert changed_attribute(before, unregistered(holder)) == "new"


def test_equal_but_for_rounding() -> None:
    one = torch.tensor([1.0, math.nan, 1e6])
    assert same(one, one + torch.tensor([0.0, 0.0, 0.1]))
    assert not same(one, one + torch.tensor([0.0, 0.0, 10.0]))
    assert not same(one, one.double())
    assert not same(one, one[:2])
    assert same(math.nan, math.nan)
    assert not same(1, 1.0)
    assert not same(torch.tensor(1), 1)
    assert same(torch.zeros(0), torch.zeros(0))
    assert same(torch.zeros(2), torch.zeros(2))

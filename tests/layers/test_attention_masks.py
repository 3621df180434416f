"""Masks as a bias and as features; that attention with them is the formula: `test_long_attention`."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tiebreak.layers.attention_kernels import How
from tiebreak.layers.attention_masks import as_bias, as_features, four_axes, levelled, of_keys


def scores(columns: tuple[Tensor, Tensor], scale: float) -> Tensor:
    """What the features add to the scores [..., Lq, Lk]."""
    return scale * (columns[0].double() @ columns[1].double().mT)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.booleans(), st.sampled_from(["float16", "bfloat16"]))
def test_features_and_bias_forbid_the_same(allowed: list[bool], causal: bool, name: str) -> None:
    dtype, length = getattr(torch, name), len(allowed)
    mask = torch.tensor(allowed).view(1, 1, 1, length)
    none, columns = as_features(mask, How("flash", causal, 0.1), dtype)
    other, bias = as_bias(mask, torch.empty(1, 1, length, 4, dtype=dtype), causal)
    assert torch.equal(none.expand(1, 1, length, 1), other.expand(1, 1, length, 1))
    past = torch.ones(length, length, dtype=torch.bool).tril() if causal else mask.new_ones(length, length)
    may = past & mask[0, 0]
    for added in (scores(columns, 0.1), bias.double()):
        found = added[0, 0].expand(length, length).masked_fill(~past, -torch.inf)  # what the kernel sees
        some = may.any(dim=-1)
        assert torch.equal(found[some] > -1e4, may[some])
        assert torch.equal(found == 0, found > -1e4)
        assert (found > -1e4)[~some].any(dim=-1).all()


def test_numbers_are_levelled_and_close_as_features() -> None:
    numbers = torch.tensor([[3.0, -1.5, -torch.inf], [-1e38, -1e38, -1e38], [-torch.inf] * 3]).view(3, 1, 1, 3)
    none, bias = levelled(numbers, torch.bfloat16)
    assert none.flatten().tolist() == [False, False, True]
    assert bias[0].flatten()[:2].tolist() == [0.0, -4.5]
    assert not bias[1:].any()
    again, columns = as_features(numbers, How("flash", False, 0.1), torch.bfloat16)
    assert torch.equal(none, again)
    added = scores(columns, 0.1)
    assert added[0].flatten()[:2].tolist() == pytest.approx([0.0, -4.5], rel=2**-8)
    assert float(added[0, 0, 0, 2]) < -1e20
    assert not added[1:].any()


def test_which_masks_can_be_features() -> None:
    row, pairs = torch.ones(2, 1, 1, 5, dtype=torch.bool), torch.ones(5, 5, dtype=torch.bool)
    assert of_keys(row, torch.float16)
    assert not of_keys(pairs, torch.float16)
    assert of_keys(row.float(), torch.bfloat16)
    assert not of_keys(row.float(), torch.float16)
    assert not of_keys(row[0, 0, 0], torch.bfloat16)
    assert four_axes(pairs[:, :1], (2, 3, 4), 5).shape == (6, 4, 5, 5)

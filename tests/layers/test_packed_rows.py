"""Packed sequences kept padded. With recurrent layers, under vmap: `zoo_recurrent` in the contract tests."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiebreak.errors import TiebreakError
from tiebreak.layers.packed_rows import PackingAsPadding, PaddedRows


def there_and_back(x: Tensor, lengths: Tensor, batch_first: bool, total: int, is_sorted: bool) -> tuple[Tensor, Tensor]:
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first, enforce_sorted=is_sorted)
    return pad_packed_sequence(packed, batch_first, -1.0, total)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.booleans(), st.integers(0, 2), st.booleans())
def test_packed_and_padded_again_as_torch_does(
    lengths: list[int], batch_first: bool, more: int, is_sorted: bool
) -> None:
    counts = torch.tensor(sorted(lengths, reverse=True) if is_sorted else lengths)
    x = torch.randn(len(lengths), 4, 2) if batch_first else torch.randn(4, len(lengths), 2)
    how = (counts, batch_first, max(lengths) + more, is_sorted)
    wanted = there_and_back(x, *how)
    with PackingAsPadding():
        found = there_and_back(x, *how)
    assert torch.equal(found[0], wanted[0])
    assert torch.equal(found[1], wanted[1])


def test_lengths_may_differ_from_run_to_run() -> None:
    x, lengths = torch.randn(3, 2, 4, 1), torch.tensor([[1, 4], [3, 2], [2, 2]])
    with PackingAsPadding():
        found, counts = vmap(lambda rows, own: there_and_back(rows, own, True, 4, False))(x, lengths)
    assert torch.equal(counts, lengths)
    for run in range(3):
        assert torch.equal(found[run], there_and_back(x[run], lengths[run], True, 4, False)[0])


@pytest.mark.parametrize(("lengths", "total"), [([0, 2], 4), ([2, 5], 4), ([2, 4], 3)])
def test_lengths_that_torch_refuses_give_no_number(lengths: list[int], total: int) -> None:
    x = torch.randn(2, 4, 1)
    with pytest.raises((RuntimeError, ValueError)):
        there_and_back(x, torch.tensor(lengths), True, total, False)
    with PackingAsPadding():
        found, _ = there_and_back(x, torch.tensor(lengths), True, total, False)
        assert found.isnan().any()
        assert pad_packed_sequence(pack_padded_sequence(x, [1, 2], True), True, 0.0, 4)[0].isnan().any()  # not sorted


def test_what_needs_the_packed_shape_is_refused_with_what_to_do() -> None:
    with PackingAsPadding():
        packed = pack_padded_sequence(torch.randn(2, 4, 1), torch.tensor([4, 2]), True)
    assert isinstance(packed.data, PaddedRows)
    with pytest.raises(TiebreakError, match=r"total_length=x\.shape\[1\]"):
        pad_packed_sequence(packed, True)
    with pytest.raises(TiebreakError, match="data of a packed sequence"):
        torch.relu(packed.data)
    with PackingAsPadding(), pytest.raises(TiebreakError, match="lengths of shape"):
        pack_padded_sequence(torch.randn(2, 4, 1), torch.tensor([4, 2, 2]), True)

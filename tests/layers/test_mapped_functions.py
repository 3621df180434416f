"""Forms of functions are torch's, at the edges; that networks with them train alike: `zoo_functions`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from tiebreak.layers.mapped_forms import mapped_forms


def mapped(function: Any, *stacks: Tensor) -> Tensor:
    """The function over runs, in our forms."""
    with mapped_forms():
        found: Tensor = vmap(function)(*stacks)
        return found


def each(function: Any, *stacks: Tensor) -> Tensor:
    """The function of each run by itself."""
    return torch.stack([function(*one) for one in zip(*stacks, strict=True)])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 0, -1])
def test_bags_are_torchs_with_empty_ones_and_ties(mode: str, padding: int | None) -> None:
    tables = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tables[:, 2] = tables[:, 1]  # a tie
    words = torch.tensor([[[0, 0], [1, 2]], [[3, 3], [0, 3]]])

    def bag(table: Tensor, bags: Tensor) -> Tensor:
        return F.embedding_bag(bags, table, mode=mode, padding_idx=padding)

    assert torch.allclose(mapped(bag, tables, words), each(bag, tables, words), rtol=0, atol=1e-14)


def test_bags_by_offsets_and_scaled_gradients_are_left_to_torch() -> None:
    tables, words = torch.randn(2, 4, 3), torch.tensor([[0, 1, 2], [3, 3, 1]])

    def bag(table: Tensor, flat: Tensor) -> Tensor:
        return F.embedding_bag(flat, table, torch.tensor([0, 1]), mode="sum")

    with pytest.warns(UserWarning, match="embedding_bag"):
        found = mapped(bag, tables, words)
    assert torch.equal(found, each(bag, tables, words))


def test_a_class_that_is_too_large_fails_as_it_does_in_torch() -> None:
    labels = torch.tensor([[0, 1], [2, 3]])
    assert torch.equal(mapped(lambda own: F.one_hot(own, 4), labels), F.one_hot(labels, 4))
    with pytest.raises(RuntimeError):
        F.one_hot(labels, 3)
    with pytest.raises(RuntimeError):
        mapped(lambda own: F.one_hot(own, 3), labels)


def test_a_mask_sets_a_number_and_whole_rows_and_keeps_the_type() -> None:
    numbers, rows = torch.arange(12).view(2, 2, 3), torch.tensor([[True, False], [False, True]])

    def fill(own: Tensor, row: Tensor) -> Tensor:
        y = own.clone()
        y[own == 4] = 1.9
        y[row] = torch.tensor(-1)
        return y

    assert torch.equal(mapped(fill, numbers, rows), each(fill, numbers, rows))

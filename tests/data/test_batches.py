from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.catalog import DESIGNS
from tiebreak.data.batches import epoch_batches
from tiebreak.models.design import Images

SEEDS, EPOCHS = st.integers(0, 2**31), st.integers(0, 500)


@given(SEEDS, EPOCHS, st.integers(1, 300), st.integers(1, 64))
def test_every_example_comes_once_and_padding_weighs_nothing(seed: int, epoch: int, examples: int, batch: int) -> None:
    batches = epoch_batches(seed, epoch, examples, batch)
    assert batches.indices.shape == batches.weights.shape == (-(-examples // batch), batch)
    counted = batches.weights > 0
    assert sorted(batches.indices[counted].tolist()) == list(range(examples))
    assert not batches.weights[~counted].any()
    assert batches.indices.min() >= 0
    assert batches.indices.max() < examples
    assert counted[:-1].all()  # only the last batch is padded, and at its end
    assert counted[-1].tolist() == sorted(counted[-1].tolist(), reverse=True)


@given(SEEDS, EPOCHS, st.integers(1, 300), st.integers(1, 64))
def test_the_weights_of_a_step_are_equal_shares_of_one(seed: int, epoch: int, examples: int, batch: int) -> None:
    weights = epoch_batches(seed, epoch, examples, batch).weights
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-14)
    assert all(len(set(row[row > 0].tolist())) == 1 for row in weights)


@given(SEEDS, EPOCHS, st.integers(50, 200), st.integers(1, 64))
def test_the_order_is_a_function_of_seed_and_epoch(seed: int, epoch: int, examples: int, batch: int) -> None:
    first = epoch_batches(seed, epoch, examples, batch)
    again = epoch_batches(seed, epoch, examples, batch)
    assert np.array_equal(first.indices, again.indices)
    assert np.array_equal(first.weights, again.weights)
    assert not np.array_equal(first.indices, epoch_batches(seed, epoch + 1, examples, batch).indices)
    assert not np.array_equal(first.indices, epoch_batches(seed + 1, epoch, examples, batch).indices)


@given(SEEDS, EPOCHS, st.integers(1, 200), st.integers(1, 64), st.integers(1, 64))
def test_the_batch_size_does_not_change_the_order(seed: int, epoch: int, examples: int, one: int, two: int) -> None:
    small, large = (epoch_batches(seed, epoch, examples, batch) for batch in (one, two))
    assert np.array_equal(small.indices.ravel()[:examples], large.indices.ravel()[:examples])


@pytest.mark.parametrize("left", [1, 2, 3, 5])
def test_a_padded_batch_has_the_loss_and_gradient_of_the_batch_without_padding(left: int) -> None:
    generator = torch.Generator().manual_seed(3)
    images = torch.rand(8 + left, 1, 12, 12, dtype=torch.float64, generator=generator)
    labels = torch.randint(3, (8 + left,), generator=generator)
    design, shape = DESIGNS["cnn-strided"], Images(channels=1, height=12, width=12, classes=3)
    net = design.network(shape, {}, 5).double().eval()
    other = copy.deepcopy(net)
    batches = epoch_batches(0, 0, 8 + left, 8)
    indices, weights = torch.from_numpy(batches.indices[1]), torch.from_numpy(batches.weights[1]).double()

    padded = torch.dot(weights, F.cross_entropy(net(images[indices]), labels[indices], reduction="none"))
    padded.backward()  # type: ignore[no-untyped-call]
    plain = F.cross_entropy(other(images[indices[:left]]), labels[indices[:left]])
    plain.backward()  # type: ignore[no-untyped-call]

    assert abs(padded.item() - plain.item()) < 1e-15
    for one, two in zip(net.parameters(), other.parameters(), strict=True):
        assert one.grad is not None
        assert two.grad is not None
        assert torch.linalg.vector_norm(one.grad - two.grad) <= 1e-14 * torch.linalg.vector_norm(two.grad)

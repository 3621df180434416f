from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor, nn

from support.families import FAMILIES
from tiebreak.layers.batchnorm import swap_batchnorm
from tiebreak.layers.dropout import swap_dropout
from tiebreak.layers.functional_dropout import key_functions
from tiebreak.models.design import Images, Shape
from tiebreak.models.input_sensitivity import (
    dropout_layers,
    flattens_rows,
    ignores_input,
    ignores_parameters,
    mixes_rows,
)
from tiebreak.models.own_shape import Tensors


class Constant(nn.Module):
    """Gives the same logits whatever it is called with."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.bias.expand(self.shape.output(2))


class Sum(Constant):
    """Gives the sum of all its inputs."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return super().forward() + sum(each.float().sum() for each in inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_network_is_found_in_every_family(family: str) -> None:
    shape = FAMILIES[family].small
    assert ignores_input(Constant(shape), shape)
    assert not ignores_input(Sum(shape), shape)
    assert not ignores_parameters(Constant(shape), shape)
    assert ignores_parameters(Constant(shape).requires_grad_(False), shape)


class AfterSpecial(Constant):
    """Takes the first four symbols for padding and marks."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return super().forward() + inputs[0].masked_fill(inputs[0] < 4, 0).float().sum()


@pytest.mark.parametrize("family", ["language", "text-classifier", "translator"])
def test_a_network_that_masks_the_first_symbols_uses_its_input(family: str) -> None:
    shape = FAMILIES[family].small
    assert not ignores_input(AfterSpecial(shape), shape)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_stays_as_it_was_and_nothing_is_drawn(training: bool) -> None:
    shape = FAMILIES["classifier"].small
    network = Constant(shape).train(training)
    before = torch.get_rng_state()
    ignores_input(network, shape)
    assert network.training is training
    assert torch.equal(before, torch.get_rng_state())


class Standardised(nn.Module):
    """Subtracts the mean over the batch, or uses a layer that does."""

    def __init__(self, shape: Images, layer: nn.Module | None = None) -> None:
        super().__init__()
        size = shape.channels * shape.height * shape.width
        self.norm, self.out, self.dropout = layer, nn.Linear(size, shape.classes), nn.Dropout(0.5)

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        mean = flat - flat.mean(dim=0) if self.norm is None else self.norm(flat)
        return cast(Tensor, self.out(self.dropout(mean)))


def test_statistics_over_the_batch_are_found_and_batch_normalisation_is_not_among_them() -> None:
    shape = Images(channels=1, height=4, width=4, classes=3)
    layers: list[tuple[nn.Module | None, bool]] = [(None, True), (nn.BatchNorm1d(16), False), (nn.LayerNorm(16), False)]
    for layer, expected in layers:
        network = Standardised(shape, layer)
        swap_dropout(network)
        swap_batchnorm(network)
        assert mixes_rows(network, shape) is expected
        assert mixes_rows(network, shape, training=False) is expected
        assert dropout_layers(network) == 1
    network = Standardised(shape, nn.BatchNorm1d(16, track_running_stats=False))
    swap_batchnorm(network)
    assert mixes_rows(network, shape, training=False), "loop and fused evaluate different numbers of examples at a time"


class Centred(Constant):
    """Keeps a running mean over batches, which only evaluation uses."""

    mean: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, *inputs: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * inputs[0].mean()
            return super().forward()
        return super().forward() - self.mean


class Mixup(Constant):
    def forward(self, *inputs: Tensor) -> Tensor:
        x = inputs[0].mean(dim=(1, 2, 3))
        x = 0.7 * x + 0.3 * x[torch.randperm(len(x))] if self.training else x
        return self.bias + x[:, None].expand(-1, self.shape.output(2)[1])


def test_rows_that_are_mixed_at_random_are_noticed() -> None:
    """One permutation of three rows may leave the first where it is."""
    shape = Images(channels=1, height=4, width=4, classes=3)
    network = Mixup(shape)
    key_functions(network)
    assert mixes_rows(network, shape)
    assert not mixes_rows(network, shape, training=False)


def test_a_running_mean_of_batches_is_a_statistic_over_the_batch() -> None:
    shape = Images(channels=1, height=4, width=4, classes=3)
    assert mixes_rows(Centred(shape), shape)
    assert not mixes_rows(Centred(shape), shape, training=False)


class Rows(Standardised):
    """Batch normalisation of the rows as they are, in another order, or of their halves."""

    order = "same"

    def forward(self, images: Tensor) -> Tensor:
        x = images.flatten(1)
        assert self.norm is not None
        if self.order == "turned":
            return cast(Tensor, self.out(self.norm(x.flip(0)).flip(0)))
        if self.order == "pairs":
            swapped = torch.arange(len(x)).view(-1, 2).flip(1).flatten() if len(x) % 2 == 0 else torch.arange(len(x))
            return cast(Tensor, self.out(self.norm(x[swapped])[swapped]))
        if self.order == "halves":
            return cast(Tensor, self.out(self.norm(x.reshape(-1, 8)).reshape(x.shape)))
        return cast(Tensor, self.out(self.norm(x)))


@pytest.mark.parametrize(
    ("order", "width", "expected"),
    [("same", 16, False), ("turned", 16, True), ("pairs", 16, True), ("halves", 8, True)],
)
def test_batch_normalisation_that_cannot_tell_padding_is_found(order: str, width: int, expected: bool) -> None:
    shape = Images(channels=1, height=4, width=4, classes=3)
    network = Rows(shape, nn.BatchNorm1d(width))
    network.order = order
    swap_batchnorm(network)
    assert flattens_rows(network, shape) is expected
    assert not flattens_rows(Standardised(shape, nn.LayerNorm(16)), shape)


class Words(nn.Module):
    """The mean of the words that are no padding: of a row of padding, zero by zero."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(3, 4), nn.BatchNorm1d(4)

    def forward(self, words: Tensor) -> Tensor:
        real = (words != 0).float().unsqueeze(-1)
        return cast(Tensor, self.norm((self.embedding(words) * real).sum(dim=1) / real.sum(dim=1)))


def test_a_row_of_padding_that_is_no_number_says_nothing() -> None:
    network = Words()
    swap_batchnorm(network)
    assert not flattens_rows(network, Tensors(signature="int64 5"))

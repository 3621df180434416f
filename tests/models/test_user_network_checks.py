"""The zoo of contract/test_user_networks.py has a network for every refusal; here is what the checks leave behind."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.global_generators import drawn_from, generator_states, seeded
from tiebreak.models.user_network_checks import check_network

INPUTS = (torch.zeros(2, 4),)


class Net(nn.Module):
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 3)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(dim=0)
        return self.out(x - self.mean)  # type: ignore[no-any-return]


class Functional(Net):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(super().forward(x), 0.5, self.training)


def make(kind: type[nn.Module], key: int) -> nn.Module:
    with seeded(key):
        return kind()


def test_it_tells_whether_dropout_is_called_as_a_function_and_draws_nothing() -> None:
    before = generator_states()
    assert not check_network(lambda key: make(Net, key), INPUTS)
    assert check_network(lambda key: make(Functional, key), INPUTS)
    assert drawn_from(before) == ""


def test_an_error_in_training_is_left_to_training() -> None:
    class Raises(Functional):
        def forward(self, x: Tensor) -> Tensor:
            out = super().forward(x)
            if self.training:
                raise ValueError("only in training")
            return out

    assert check_network(lambda key: make(Raises, key), INPUTS)


def test_what_a_network_reads_from_outside_is_not_blamed_on_an_attribute() -> None:
    ticks = iter(range(100))

    class Clock(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.out(x) * (1 + next(ticks) * self.training)  # type: ignore[no-any-return]

    with pytest.raises(TiebreakError, match=r"changes from call to call.*global variable"):
        check_network(lambda key: make(Clock, key), INPUTS)


def test_layers_that_are_iterated_over_cannot_have_a_hidden_one() -> None:
    class Iterates(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(4, 4), nn.Linear(4, 3))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self:
                x = torch.tanh(F.dropout(layer(x), 0.5, self.training))
            return x

    with pytest.raises(TiebreakError, match=r"F\.dropout, or another .* iterates"):
        check_network(lambda key: make(Iterates, key), INPUTS)


def test_inputs_of_zeros_do_not_hide_what_a_network_does() -> None:
    class Scales(Net):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += self.training
            return self.out(x * self.calls)  # type: ignore[no-any-return]

    with pytest.raises(TiebreakError, match="'calls'"):
        check_network(lambda key: make(Scales, key), INPUTS)

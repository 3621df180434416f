from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from tiebreak.layers.buffer_updates import take_buffer_updates
from tiebreak.layers.carry import Carry, carried, carry_on, from_zeros


class Sum(nn.Module):
    """Adds what it sees [B, S, H] to its state, times a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))
        self.carry = Carry(streams=3, hidden=2)

    def forward(self, x: Tensor) -> Tensor:
        state: Tensor = self.weight * (self.carry(len(x)) + x.flatten(0, 1))
        self.carry.leave(state)
        return state.view(x.shape)


def window(value: float, count: int = 1) -> Tensor:
    return torch.full((count, 3, 2), value)


def test_a_forward_pass_leaves_the_new_state_and_changes_nothing() -> None:
    network = Sum()
    assert carried(network) == ["carry.state"]
    network(window(1.0))
    assert not network.carry.state.any()
    fresh = take_buffer_updates(network)
    assert torch.equal(fresh["carry.state"], torch.full((3, 2), 2.0))
    assert not fresh["carry.state"].requires_grad
    assert not take_buffer_updates(network), "it is handed over once"


def test_the_state_has_no_history_so_that_gradients_end_at_the_window() -> None:
    network = Sum()
    network(window(1.0))
    carry_on(network)
    network(window(1.0)).sum().backward()
    assert network.weight.grad == 6 * 3.0  # d/dw w (2 + 1): what made the 2 does not count


def test_windows_seen_at_once_all_start_from_the_same_state_and_the_last_goes_on() -> None:
    network = Sum()
    network.carry.state.fill_(1.0)
    found = network(torch.cat([window(1.0), window(5.0)]))
    assert torch.equal(found, torch.cat([window(4.0), window(12.0)]))
    assert torch.equal(take_buffer_updates(network)["carry.state"], torch.full((3, 2), 12.0))


def test_axes_before_the_streams_stay_where_they_are() -> None:
    carry = Carry(2, streams=3, hidden=4)
    carry.state.copy_(torch.arange(24.0).view(2, 3, 4))
    rows = carry(5)
    assert rows.shape == (2, 15, 4)
    assert all(torch.equal(rows[:, 3 * number : 3 * number + 3], carry.state) for number in range(5))
    carry.leave(torch.arange(120.0).view(2, 15, 4))
    assert torch.equal(carry.take_updates()["state"], torch.arange(120.0).view(2, 15, 4)[:, -3:])


def test_an_excursion_from_zeros_leaves_the_state_alone() -> None:
    network = Sum()
    network.carry.state.fill_(7.0)
    with torch.no_grad(), from_zeros(network):
        for wanted in (2.0, 6.0):
            assert torch.equal(network(window(1.0)), window(wanted))
            carry_on(network)
    assert torch.equal(network.carry.state, torch.full((3, 2), 7.0))


def test_under_vmap_and_grad_every_run_has_its_own_state() -> None:
    networks = [Sum(), Sum()]
    networks[1].weight.data.fill_(3.0)
    networks[1].carry.state.fill_(1.0)
    params, buffers = stack_module_state(networks)
    inside = copy.deepcopy(networks[0])

    def loss(params: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        out = functional_call(inside, {**params, **buffers}, (window(1.0),))
        return out.sum(), take_buffer_updates(inside)

    gradient, (_, fresh) = vmap(grad_and_value(loss, has_aux=True))(params, buffers)
    assert gradient["weight"].tolist() == [6.0, 12.0]
    assert torch.equal(fresh["carry.state"], torch.stack([torch.full((3, 2), 2.0), torch.full((3, 2), 6.0)]))


def test_it_is_no_part_of_what_a_network_saves() -> None:
    assert list(Sum().state_dict()) == ["weight"]

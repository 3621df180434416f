from __future__ import annotations

import pytest
import torch
from torch import nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.batchnorm import BatchNorm
from tiebreak.layers.buffer_updates import OwnBuffers, rebound_buffers, take_buffer_updates, updating_layers
from tiebreak.layers.carry import Carry


def test_updates_have_full_names_and_are_taken_once() -> None:
    network = nn.ModuleDict({"norm": BatchNorm(nn.BatchNorm1d(2)), "inner": nn.Sequential(Carry(streams=1, hidden=3))})
    assert list(updating_layers(network)) == ["norm", "inner.0"]
    assert take_buffer_updates(network) == {}
    network["norm"](torch.tensor([[0.0, 2.0], [2.0, 4.0]]))
    network["inner"][0].leave(torch.ones(1, 3))  # type: ignore[index]
    updates = take_buffer_updates(network)
    assert updates.keys() == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked", "inner.0.state"}
    torch.testing.assert_close(updates["norm.running_mean"], torch.tensor([0.1, 0.3]))
    assert updates["inner.0.state"].tolist() == [[1.0, 1.0, 1.0]]
    assert take_buffer_updates(network) == {}


def test_buffers_change_only_when_the_caller_writes() -> None:
    layer = BatchNorm(nn.BatchNorm1d(2))
    layer(torch.randn(4, 2))
    assert layer.running_mean is not None
    assert not layer.running_mean.any()
    for name, value in take_buffer_updates(layer).items():  # a network that is one layer: names without a dot
        layer.get_buffer(name).copy_(value)
    assert layer.running_mean.any()


def test_a_network_without_such_layers_has_no_updates() -> None:
    network = nn.Linear(2, 2)
    network(torch.ones(1, 2))
    assert take_buffer_updates(network) == {}


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(2))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))


def test_rebound_buffers_are_found_and_those_changed_in_place_are_not() -> None:
    network = nn.Sequential(Remembers())
    before = dict(network.named_buffers())
    before["0.count"].add_(1)
    assert rebound_buffers(network, before) == {}
    network[0].sum = torch.ones(2, requires_grad=True) * 3
    (found,) = rebound_buffers(network, before).items()
    assert found[0] == "0.sum"
    assert not found[1].requires_grad


def test_a_run_keeps_its_own_tensors_with_the_new_values() -> None:
    network = nn.Sequential(Remembers())
    state = dict(network.named_buffers())
    buffers = OwnBuffers(network, state)
    network[0].sum = torch.ones(2, requires_grad=True) * 3
    state["0.count"].add_(1)
    buffers.keep()
    assert network[0].sum is state["0.sum"]
    assert state["0.sum"].tolist() == [3, 3]
    assert int(state["0.count"]) == 1
    state["0.sum"].mul_(torch.ones(2, requires_grad=True))
    buffers.keep()
    assert not state["0.sum"].requires_grad


def test_a_buffer_may_be_a_view_but_not_changed_in_place_with_a_gradient() -> None:
    """As in `register_buffer("codes", codes[None])`: torch cannot detach a view in place."""
    network = nn.Sequential(Remembers())
    network[0].sum = torch.zeros(1, 2)[0]
    state = dict(network.named_buffers())
    buffers = OwnBuffers(network, state)
    network[0].sum = torch.ones(2, requires_grad=True) * 3
    buffers.keep()
    assert network[0].sum is state["0.sum"]
    assert state["0.sum"].tolist() == [3, 3]
    state["0.sum"].mul_(torch.ones(2, requires_grad=True))
    with pytest.raises(TiebreakError, match=r"'0\.sum' is a view .*clone"):
        buffers.keep()


@pytest.mark.parametrize("value", [torch.zeros(3), torch.zeros(2, dtype=torch.float64), torch.zeros(2).long()])
def test_another_shape_or_type_is_refused_by_name(value: torch.Tensor) -> None:
    network = nn.Sequential(Remembers())
    before = dict(network.named_buffers())
    buffers = OwnBuffers(network, before)
    network[0].sum = value
    for check in (lambda: rebound_buffers(network, before), buffers.keep):
        with pytest.raises(TiebreakError, match=r"'0\.sum'"):
            check()

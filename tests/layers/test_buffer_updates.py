from __future__ import annotations

import torch
from torch import nn

from tiebreak.layers.batchnorm import BatchNorm
from tiebreak.layers.buffer_updates import take_buffer_updates, updating_layers
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

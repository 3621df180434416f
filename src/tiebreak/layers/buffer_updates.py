"""Buffers that a forward pass updates: running statistics, the state carried from one window to the next.

A forward pass never writes into a buffer, since vmap cannot write into what it maps over. The layer keeps the new
values; the caller of the network takes them and writes them into one run's buffers, or into those of a stack of runs.
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn


class UpdatesBuffers(nn.Module):
    """A layer whose forward pass computes new values of its buffers."""

    @abstractmethod
    def take_updates(self) -> dict[str, Tensor]:
        """The new buffers after the last forward, by their names in the layer. A second call returns none."""


def updating_layers(network: nn.Module) -> dict[str, UpdatesBuffers]:
    """The layers of a network that update buffers, by their full names."""
    return {name: layer for name, layer in network.named_modules() if isinstance(layer, UpdatesBuffers)}


def take_buffer_updates(network: nn.Module) -> dict[str, Tensor]:
    """The new buffers of all layers after the last forward, by their full names. A second call returns none.

    Under vmap or grad, call it inside the transformed function and return the result from it.
    """
    return {
        f"{name}.{key}" if name else key: value
        for name, layer in updating_layers(network).items()
        for key, value in layer.take_updates().items()
    }

"""Buffers that a forward pass renews: running statistics, the state that is carried from one window to the next.

A pass never writes into a buffer, since vmap cannot write into what it maps over. A layer leaves the new values, and
who called the network asks for them and writes them where they belong: into one run's buffers, or a stack's.
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn


class Renewing(nn.Module):
    """A layer whose buffers change with what it sees."""

    @abstractmethod
    def take_fresh(self) -> dict[str, Tensor]:
        """The buffers after the last forward, by their names in the layer; once, then there are none."""


def renewing(network: nn.Module) -> dict[str, Renewing]:
    """The layers of a network that renew buffers, by their full names."""
    return {name: layer for name, layer in network.named_modules() if isinstance(layer, Renewing)}


def fresh_buffers(network: nn.Module) -> dict[str, Tensor]:
    """The buffers after the last forward that renewed them, by their full names; once.

    Under vmap or grad, ask inside the transformed function and return them from it.
    """
    return {
        f"{name}.{key}" if name else key: value
        for name, layer in renewing(network).items()
        for key, value in layer.take_fresh().items()
    }

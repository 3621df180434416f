"""Buffers that a forward pass updates: running statistics, the state carried from one window to the next.

A forward pass never writes into a buffer, since vmap cannot write into what it maps over. The layer keeps the new
values; the caller of the network takes them and writes them into one run's buffers, or into those of a stack of runs.

A user's network may do otherwise: rebind a buffer (`self.ema = 0.9 * self.ema + ...`) or change it in place. A change
in place reaches the buffer by itself, of one run or of a stack. A rebound one is found by comparing the objects.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from torch import Tensor, nn

from tiebreak.errors import TiebreakError


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
    return updates_of(updating_layers(network))


def updates_of(layers: Mapping[str, UpdatesBuffers]) -> dict[str, Tensor]:
    """`take_buffer_updates` of layers that are known: finding them takes longer than a step of a small network."""
    return {
        f"{name}.{key}" if name else key: value
        for name, layer in layers.items()
        for key, value in layer.take_updates().items()
    }


def rebound_buffers(network: nn.Module, before: dict[str, Tensor]) -> dict[str, Tensor]:
    """The buffers that are another tensor than `before`, its `named_buffers` then, by their full names."""
    found = {}
    for name, buffer in network.named_buffers():
        if name in before and buffer is not before[name]:
            found[name] = checked_rebound(name, before[name], buffer)
    return found


def checked_rebound(name: str, before: Tensor, after: Tensor) -> Tensor:
    """The new value of a buffer without its history. Refuses one that has another shape or type."""
    if after.shape != before.shape or after.dtype != before.dtype:
        raise TiebreakError(
            f"the forward pass replaces buffer {name!r} of {_form(before)} by one of {_form(after)}: keep its shape and"
            " type"
        )
    return after.detach()


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


class OwnBuffers:
    """The buffers of one run's network, which stay the same tensors from step to step."""

    def __init__(self, network: nn.Module, buffers: dict[str, Tensor]) -> None:
        self._places = []
        for name, buffer in buffers.items():
            owner, _, own_name = name.rpartition(".")
            places = network.get_submodule(owner)._buffers
            if own_name in places:  # parameters that are not trained are no buffers
                self._places.append((places, own_name, name, buffer))

    def keep(self) -> None:
        """Copy the value of every rebound buffer into the run's own, put that back, and forget all history."""
        for places, own_name, name, buffer in self._places:
            now = places[own_name]
            if now is not buffer:
                if now is None:
                    raise TiebreakError(f"the forward pass sets buffer {name!r} to None")
                places[own_name] = buffer
                _forget(name, buffer)
                buffer.copy_(checked_rebound(name, buffer, now))
            else:
                _forget(name, buffer)


def _forget(name: str, buffer: Tensor) -> None:
    """Drop the history of a buffer that a forward pass has changed."""
    if not buffer.requires_grad:
        return  # a view, such as `weights[None]`, cannot be detached in place, also if there is nothing to drop
    if buffer._is_view():
        raise TiebreakError(
            f"buffer {name!r} is a view that the forward pass changes: register a copy of it (.clone())"
        )
    buffer.detach_()

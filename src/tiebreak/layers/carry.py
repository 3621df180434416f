"""State that goes from one window of a text to the next, and belongs to the run.

Truncated back-propagation: a network that reads a long stream in windows starts each window from the state that the
last one ended in, as a number without a history. The state is a buffer [..., S, H], S streams that are read side by
side; a forward pass reads it and leaves its new, detached value for `take_buffer_updates`. So it is stacked,
checkpointed and fused as running statistics are. Every pass over a text starts from zeros.

A network may see several windows at once [B, S, ...]: all start from the same state, and the last one's is carried on.
Training and evaluation of tasks that have an order give it one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tiebreak.layers.buffer_updates import UpdatesBuffers, take_buffer_updates


class Carry(UpdatesBuffers):
    """The state of `streams` streams, `hidden` numbers each; `lead` are axes before these, such as layers."""

    state: Tensor

    def __init__(self, *lead: int, streams: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(*lead, streams, hidden), persistent=False)
        self._update: Tensor | None = None

    def forward(self, windows: int) -> Tensor:
        """The state [..., B * S, H] in which each of B windows begins."""
        *lead, streams, hidden = self.state.shape
        return self.state.unsqueeze(-3).expand(*lead, windows, streams, hidden).flatten(-3, -2)

    def leave(self, state: Tensor) -> None:
        """Note the state [..., B * S, H] after B windows, for `take_updates`: that of the last window."""
        self._update = state[..., -self.state.shape[-2] :, :].detach()

    def take_updates(self) -> dict[str, Tensor]:
        """The state after the last forward."""
        found, self._update = self._update, None
        return {} if found is None else {"state": found}


def carried(network: nn.Module) -> list[str]:
    """The full names of the buffers that hold carried states."""
    layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, Carry)}
    return [f"{name}.state" if name else "state" for name in layers]


@contextmanager
def from_zeros(network: nn.Module) -> Iterator[None]:
    """Set the carried states to zero inside the block, and restore them afterwards."""
    states = [network.get_buffer(name) for name in carried(network)]
    before = [state.clone() for state in states]
    for state in states:
        state.zero_()
    try:
        yield
    finally:
        for state, values in zip(states, before, strict=True):
            state.copy_(values)


def carry_on(network: nn.Module) -> None:
    """Write the new states into the buffers, so that the next window starts from them."""
    for name, value in take_buffer_updates(network).items():
        network.get_buffer(name).copy_(value)

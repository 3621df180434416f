"""The tensors of many runs' states as one tensor each, with a run axis first."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tiebreak.train.step import State


class Stack:
    """The tensors of n states as one tensor [n, ...] each; the states' own become views of these."""

    def __init__(self, states: Sequence[State]) -> None:
        self.params = _joined([state.params for state in states])
        self.buffers = _joined([state.buffers for state in states])
        self.slots = {name: _joined([state.slots[name] for state in states]) for name in self.params}
        self.averages: dict[str, Tensor] = {}
        if any(state.averages for state in states):  # of a run without, the parameters: its decay is 0
            self.averages = _joined([state.averages or dict(state.params) for state in states])

    def load(self, states: Sequence[State]) -> None:
        """Take over the numbers of other states of the same runs, whose tensors become views too."""
        _load(self.params, [state.params for state in states])
        _load(self.buffers, [state.buffers for state in states])
        for name, slots in self.slots.items():
            _load(slots, [state.slots[name] for state in states])
        _load(self.averages, [state.averages or dict(state.params) for state in states])


def _joined(each: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Stack tensors by name. A run without a tensor that others have (a momentum of 0) gets zeros."""
    names = {name: values for tensors in reversed(each) for name, values in tensors.items()}
    stacks = {}
    for name, like in names.items():
        stack = stacks[name] = torch.stack([tensors.get(name, torch.zeros_like(like)) for tensors in each])
        for row, tensors in enumerate(each):
            if name in tensors:
                tensors[name] = stack[row]
    return stacks


def _load(stacks: dict[str, Tensor], each: Sequence[dict[str, Tensor]]) -> None:
    """As `_joined`, into stacks that there are."""
    for name, stack in stacks.items():
        for row, tensors in enumerate(each):
            if name in tensors:
                stack[row].copy_(tensors[name])
                tensors[name] = stack[row]
            else:
                stack[row].zero_()

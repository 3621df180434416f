"""A traced function of a state, of what is shared and of what each step brings, ready to run on its device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from tiebreak.train.fused.step_inputs import Feed, mapped
from tiebreak.train.fused.trace import Function, leaves_of, trace


class Program(Protocol):
    """A function called with the same tensors again and again, and with a new row each time."""

    def advance(self, feed: Feed, first: int, steps: int) -> int:
        """Run some of the steps from row `first` of the feed on, at most `steps`. Returns how many were run."""

    def call(self, row: Feed) -> Any:
        """Run one step and return what the function returns."""


def make_program(
    function: Function,
    state: Mapping[str, Any],
    shared: Mapping[str, Any],
    row: Feed,
    *,
    steps: int = 1,
    compiled: bool = False,
) -> Program:
    """The function, traced for tensors of these shapes. On a GPU it is captured, `steps` of it at once."""
    if leaves_of(row)[0].is_cuda:
        from tiebreak.train.fused.capture import Captured

        return Captured(function, state, shared, row, steps=steps, compiled=compiled)
    return Traced(function, state, shared, row)


class Traced:
    """The traced operations, called one by one from Python."""

    def __init__(self, function: Function, state: Mapping[str, Any], shared: Mapping[str, Any], row: Feed) -> None:
        self._leaves = leaves_of(state, shared)
        self._trace = trace(function, state, shared, row)

    def advance(self, feed: Feed, first: int, steps: int) -> int:
        """Run one step."""
        self.call(mapped(feed, lambda values: values[first]))
        return 1

    def call(self, row: Feed) -> Any:
        """Run one step and return what the function returns."""
        with torch.no_grad():
            return self._trace([*self._leaves, *leaves_of(row)])

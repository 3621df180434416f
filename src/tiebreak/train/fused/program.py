"""A traced function of a state, shared tensors and the inputs of one step, ready to run on its device."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch

from tiebreak.train.fused.free_views import free_views
from tiebreak.train.fused.step_inputs import StepInputs, mapped
from tiebreak.train.fused.trace import Function, leaves_of, trace


class Program(Protocol):
    """A function that is called with the same state and shared tensors each time, and with a new row of inputs."""

    operations: int  # of one call

    def advance(self, inputs: StepInputs, first: int, steps: int) -> int:
        """Run some of the steps, at most `steps`, starting at row `first` of the inputs. Returns how many were run."""

    def call(self, row: StepInputs) -> Any:
        """Run one step and return what the function returns."""


def make_program(
    function: Function,
    state: Mapping[str, Any],
    shared: Mapping[str, Any],
    row: StepInputs,
    *,
    steps: int = 1,
    compiled: bool = False,
    meanwhile: AbstractContextManager[None] | None = None,
    merge: bool = False,
) -> Program:
    """The function, traced for tensors of these shapes. On a GPU, `steps` calls are captured as one CUDA graph.

    It is traced inside `meanwhile`, at whose end everything is there that the function needs to run. `merge`: what it
    computes several times is computed once, see `repeated_operations`.
    """
    if leaves_of(row)[0].is_cuda:
        from tiebreak.train.fused.capture import Captured

        with meanwhile or nullcontext():
            traced = trace(function, state, shared, row, merge=merge)
        return Captured(traced, state, shared, row, steps=steps, compiled=compiled)
    return Traced(function, state, shared, row, merge=merge)


class Traced:
    """The traced operations, called one by one from Python."""

    def __init__(
        self,
        function: Function,
        state: Mapping[str, Any],
        shared: Mapping[str, Any],
        row: StepInputs,
        *,
        merge: bool = False,
    ) -> None:
        self._leaves = leaves_of(state, shared)
        self._trace = trace(function, state, shared, row, merge=merge)
        free_views(self._trace.graph)
        self.operations = self._trace.operations

    def advance(self, inputs: StepInputs, first: int, steps: int) -> int:
        """Run one step."""
        self.call(mapped(inputs, lambda values: values[first]))
        return 1

    def call(self, row: StepInputs) -> Any:
        """Run one step and return what the function returns."""
        with torch.no_grad():
            return self._trace([*self._leaves, *leaves_of(row)])

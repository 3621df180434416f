"""A program on a GPU: as traced, its products rewritten, compiled, and several steps captured as a CUDA graph.

A step of a small network takes less time than Python needs to launch its kernels; replaying a graph launches them
all at once. The inputs of the steps are copied to fixed addresses before a replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from tiebreak.layers.product_conv import compile_kernels
from tiebreak.layers.run_products import OP, descend
from tiebreak.train.fused.compiler import compile_graph
from tiebreak.train.fused.free_views import free_views
from tiebreak.train.fused.rewrite import rewrite
from tiebreak.train.fused.step_inputs import StepInputs
from tiebreak.train.fused.trace import Trace, leaves_of

ALIGNED = 16  # elements: the compiler assumes that its inputs start at multiples of 16 bytes


class Captured:
    """A `Program` for CUDA. One replay runs `steps` steps, or a single one if fewer are left."""

    def __init__(
        self,
        traced: Trace,
        state: Mapping[str, Any],
        shared: Mapping[str, Any],
        row: StepInputs,
        *,
        steps: int,
        compiled: bool,
    ) -> None:
        self._steps = steps
        self._state, self._fixed = leaves_of(state), leaves_of(state, shared)
        self._result, self.operations = traced.result, traced.operations
        self._descents = rewrite(traced.graph, compiled=compiled)
        if not compiled:
            free_views(traced.graph)
        self._windows = [_window(values, steps) for values in leaves_of(row)]
        inputs: list[Any] = [*self._fixed, *[window[0] for window in self._windows]]
        self._call: Any = compile_graph(traced.graph, inputs) if compiled else traced.graph
        self._pool: Any = torch.cuda.graph_pool_handle()  # shared: its graphs never run at the same time
        # The products were not ours yet when the kernels of other layers were compiled.
        self._ready = compiled or all(node.target is not OP for node in traced.graph.graph.nodes)
        self._graphs = {count: self._capture(count) for count in dict.fromkeys((steps, 1))}

    def advance(self, inputs: StepInputs, first: int, steps: int) -> int:
        """Run the steps of one replay."""
        count = self._steps if steps >= self._steps else 1
        for window, values in zip(self._windows, leaves_of(inputs), strict=True):
            window[:count].copy_(values[first : first + count])
        self._replay(count)
        return count

    def call(self, row: StepInputs) -> Any:
        """Run one step and return what the function returns; the next call overwrites it."""
        for window, values in zip(self._windows, leaves_of(row), strict=True):
            window[0].copy_(values)
        return pytree.tree_unflatten(self._replay(1), self._result)

    def _replay(self, count: int) -> list[Tensor]:
        graph, results = self._graphs[count]
        graph.replay()
        return results

    def _capture(self, count: int) -> tuple[torch.cuda.CUDAGraph, list[Tensor]]:
        """Capture `count` steps. The warm-up steps before it, which compile everything, are undone."""
        with self._undone():
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                if not self._ready:
                    with compile_kernels(partial(self._step, 0)):
                        self._ready = True
                for _ in range(2):
                    self._step(0)
            torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            results = [self._step(at) for at in range(count)]
        return graph, results[-1]

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """The state is as before afterwards."""
        saved = [values.clone() for values in self._state]
        yield
        for values, before in zip(self._state, saved, strict=True):
            values.copy_(before)

    def _step(self, at: int) -> list[Tensor]:
        with torch.no_grad():
            found: list[Tensor] = self._call(*self._fixed, *[window[at] for window in self._windows])
            for descent in self._descents:
                a, b, rate = found[descent.first : descent.first + 3]
                param = self._fixed[descent.param]
                descend(param.view(len(param), a.shape[1], b.shape[2]), a, b, rate)
        return found[: self._result.num_leaves]


def _window(values: Tensor, steps: int) -> Tensor:
    """Memory for the rows [steps, ...] of the inputs, each starting at an aligned address."""
    size = -(-values.numel() // ALIGNED) * ALIGNED
    return values.new_zeros(steps, size)[:, : values.numel()].view(steps, *values.shape)

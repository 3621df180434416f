"""Programs of a GPU without one: in place of a CUDA graph, the steps that it would replay are run again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from tiebreak.train.fused import capture
from tiebreak.train.fused.capture import Captured
from tiebreak.train.fused.step_inputs import StepInputs
from tiebreak.train.fused.trace import Function, trace


class Replay:
    """Stands in for `torch.cuda.CUDAGraph`: the results are overwritten by each replay."""

    def __init__(self, program: Captured, steps: int) -> None:
        self._program, self._steps = program, steps
        self.results: list[Tensor] = []

    def replay(self) -> None:
        self.results[:] = [self._program._step(at) for at in range(self._steps)][-1]


def capture_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `Captured` run on a CPU."""

    def captured(program: Captured, steps: int) -> tuple[Replay, list[Tensor]]:
        with program._undone():
            program._step(0)
        graph = Replay(program, steps)
        return graph, graph.results

    monkeypatch.setattr(Captured, "_capture", captured)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(capture, "compile_graph", lambda graph, inputs: graph)


def program_for_a_gpu(
    function: Function, state: Mapping[str, Any], shared: Mapping[str, Any], row: StepInputs, *, merge: bool = False,
    steps: int = 1, **_: Any,
) -> Captured:  # fmt: skip
    """What `make_program` makes where there is a GPU."""
    traced = trace(function, state, shared, row, merge=merge)
    return Captured(traced, state, shared, row, steps=steps, compiled=False)

"""Compiles the Triton kernels of a traced graph at the same time, before it runs.

A kernel is compiled when it is first launched, and a network has a kernel for each size of its layers: one after the
other, those of a residual network take longer than everything else before its first step. Nothing is computed here: our
operations are called with empty tensors of the right sizes, and their launches only compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import triton
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from triton.runtime.jit import JITFunction

from tiebreak.system import cores


def compile_ahead(graph: GraphModule) -> None:
    """Compile the kernels of our operations in the graph. Where one does not compile, its launch will say why."""
    with ThreadPoolExecutor(cores()) as pool, triton.AsyncCompileMode(pool, ignore_errors=True), _only_compiled():
        for node in graph.graph.nodes:
            if node.op == "call_function" and getattr(node.target, "namespace", "") == "tiebreak":
                node.target(*map_arg(node.args, _empty), **map_arg(node.kwargs, _empty))


def _empty(node: Node) -> Any:
    """A tensor like the one that the node will give."""
    like = node.meta["val"]
    return torch.empty_strided(like.size(), like.stride(), dtype=like.dtype, device=like.device)


@contextmanager
def _only_compiled() -> Iterator[None]:
    """Inside, a launch compiles its kernel and does not run it."""
    launch = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        return launch(self, *args, grid=grid, warmup=True, **options)

    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = launch

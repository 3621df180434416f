"""Compiles a traced graph; what was compiled before is read from disk, also by another process.

torch keeps compiled graphs in a folder of its own choice, but only those that are compiled in a context with a record
of shapes, which a graph of our tracing does not have by itself: without it every process compiled anew.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tiebreak.data.fetch import cache_dir

FOLDER = "TORCHINDUCTOR_CACHE_DIR"  # torch's own: a user's choice stays


def compile_graph(graph: GraphModule, inputs: Sequence[Tensor]) -> Any:
    """The graph as a compiled function of such inputs."""
    os.environ.setdefault(FOLDER, str(cache_dir() / "compiled"))
    with tracing(TracingContext(FakeTensorMode(shape_env=ShapeEnv()))):
        return torch._inductor.compile(graph, list(inputs))

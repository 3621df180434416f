"""Parts of a user's network that `torch.compile` or `torch.jit` made.

Tiebreak traces, and where it pays compiles, the step of all runs as a whole. A compiled part inside cannot be traced,
and every process would compile it anew: a layer runs as it was written, and so does a function where runs are fused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tiebreak.errors import TiebreakError


def leave_uncompiled(network: nn.Module) -> None:
    """Make compiled layers run as written, in place. Script modules cannot: they are refused."""
    for name, layer in network.named_modules():
        if isinstance(layer, torch.jit.ScriptModule):
            where = f"layer {name!r}" if name else "it"
            raise TiebreakError(
                f"{where} is compiled by torch.jit, which hides what is in it; leave out torch.jit.script or trace"
            )
        layer._compiled_call_impl = None  # of `layer.compile()`
    for layer in network.modules():
        if (dynamo := _dynamo()) and isinstance(layer, dynamo.eval_frame.OptimizedModule):
            vars(layer)["forward"] = layer._orig_mod


@contextmanager
def as_written() -> Iterator[None]:
    """Inside the block, compiled functions run as written, and can be traced."""
    if (dynamo := _dynamo()) is None:
        yield
        return
    with torch.compiler.set_stance("force_eager"), dynamo.config.patch(error_on_nested_fx_trace=False):
        yield


def _dynamo() -> Any:
    """torch's compiler, where something was compiled; importing it takes a second."""
    return sys.modules.get("torch._dynamo")

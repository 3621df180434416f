"""Which transforms of `torch.func` a call is inside of."""

from __future__ import annotations

import torch
from torch._C._functorch import TransformType


def once_differentiated() -> bool:
    """Whether the transforms around the call are vmap and at most one gradient: our operations have no second one."""
    kinds = [each.key() for each in torch._C._functorch.get_interpreter_stack() or []]
    return kinds.count(TransformType.Grad) <= 1 and set(kinds) <= {TransformType.Grad, TransformType.Vmap}

"""Which transforms of `torch.func` a call is inside of, and at which place of them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C._functorch import CVmapInterpreterPtr, RandomnessType, TransformType


def once_differentiated() -> bool:
    """Whether the transforms around the call are vmap and at most one gradient: our operations have no second one."""
    kinds = [each.key() for each in torch._C._functorch.get_interpreter_stack() or []]
    return kinds.count(TransformType.Grad) <= 1 and set(kinds) <= {TransformType.Grad, TransformType.Vmap}


def places_apart(device: torch.device) -> list[Tensor]:
    """The number of the present row in each vmap of a user that asks for `randomness="different"`, int32.

    Ours, over the runs, does not: a run's numbers are its own by its key.
    """
    found = []
    for each in torch._C._functorch.get_interpreter_stack() or []:
        if each.key() == TransformType.Vmap:
            mapped = CVmapInterpreterPtr(each)
            if mapped.randomness() == RandomnessType.Different:
                with torch._C._DisableFuncTorch():  # a gradient around the call would wrap the rows
                    rows = torch.arange(mapped.batchSize(), dtype=torch.int32, device=device)
                found.append(torch._C._functorch._add_batch_dim(rows, 0, each.level()))
    return found

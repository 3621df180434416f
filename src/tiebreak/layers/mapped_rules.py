"""Rules of vmap for operations that torch otherwise computes run by run, since it has no rule for them.

An operation in place is the one that is not, and a copy. Some others, by name, are decomposed as torch does elsewhere,
each tested to give the numbers of torch's kernel. Not by name: `affine_grid_generator`, which rounds otherwise, so that
a grid over pixels reads other ones. Rules act under vmap only.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._functorch.vmap import lazy_load_decompositions  # type: ignore[attr-defined]

KEY = "FuncTorchBatched"
COVERED = (KEY, "FuncTorchBatchedDecomposition", "CompositeImplicitAutograd")
NAMED = frozenset(("_weight_norm_interface", "max_unpool2d", "max_unpool3d", "isin", "take"))
# Composed of other operations, which vmap without a gradient does not see.
COMPOSED = ("_weight_norm", "norm_except_dim", "quantile", "nanquantile", "stft", "istft")


@cache
def add_mapped_rules() -> Any:
    """Register them, once in a process. Returns the library that holds them."""
    lazy_load_decompositions()  # torch's own come first
    rules: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for operation, decomposition in decomposition_table.items():
        if isinstance(operation, torch._ops.OpOverload) and (rule := _rule(operation, decomposition)):
            rules.impl(operation, rule, KEY)
    for name in COMPOSED:
        packet = getattr(torch.ops.aten, name)
        for operation in (getattr(packet, overload) for overload in packet.overloads()):
            if not _has(operation, KEY) and not _writes_elsewhere(operation):
                rules.impl(operation, partial(torch._ops.OpOverload.decompose, operation), KEY)
    return rules


def _rule(operation: Any, decomposition: Any) -> Any:
    """Our rule of an operation; None where it has another, or needs none."""
    name = operation._schema.name.removeprefix("aten::")
    random = torch.Tag.nondeterministic_seeded in operation.tags
    if random or _writes_elsewhere(operation) or any(_has(operation, key) for key in COVERED):
        return None
    if name in NAMED:
        return decomposition
    twin = getattr(getattr(torch.ops.aten, name[:-1], None), operation._overloadname, None)
    if not name.endswith("_") or twin is None:
        return None
    return lambda values, *args, **kwargs: values.copy_(twin(values, *args, **kwargs))


def _has(operation: Any, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(operation.name(), key)


def _writes_elsewhere(operation: torch._ops.OpOverload) -> bool:
    return any(each.is_out for each in operation._schema.arguments)

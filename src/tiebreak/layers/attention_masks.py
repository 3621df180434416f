"""Masks of attention in the forms that torch's kernels take: a bias, or one more feature.

A mask says which keys a query may attend to, or has numbers that are added to the scores. As a bias it is one number
for each pair; kernels without a bias take a mask that is one row for all queries as one more feature: a large number
for each query, times zero for a key that is allowed and a large negative number for one that is not.

Kernels differ in what they return for a query without an allowed key, and may lose its gradient. So in both forms it
attends to all keys, and the caller drops its result: `none` of the results here says where.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tiebreak.layers.attention_kernels import How

# The square forbids: times a scale of 1e-6 and more it is far below any score (in float16, any under 2^30 times it).
FAR = {torch.float16: 2.0**15, torch.bfloat16: 2.0**50, torch.float32: 2.0**50}  # exact in their types
LEAST_SCALE = 1e-6


def four_axes(mask: Tensor, lead: tuple[int, ...], keys: int) -> Tensor:
    """A mask that broadcasts to [*lead, Lq, Lk] as one that broadcasts to [B, H, Lq, Lk], with all keys."""
    mask = mask.expand(*mask.shape[:-1], keys)
    if len(lead) > 2:
        return mask.expand(*lead, *mask.shape[-2:]).reshape(-1, lead[-1], *mask.shape[-2:])
    return mask[(None,) * (4 - mask.ndim)]


def as_bias(mask: Tensor, q: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Which queries have no key, and a bias that forbids what the mask does, except to them."""
    if causal:
        mask = mask & torch.ones(q.shape[-2], mask.shape[-1], dtype=torch.bool, device=q.device).tril()
    none = ~mask.any(dim=-1, keepdim=True)
    lowest = torch.finfo(q.dtype).min / 2
    bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~(mask | none), lowest)
    return none, bias


def levelled(numbers: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Which queries have no key, and a bias without -inf whose largest number for each query is 0.

    Softmax does not see a constant; kernels that read scores of -1e38 everywhere lose their gradient.
    """
    highest = numbers.amax(dim=-1, keepdim=True)
    none = highest == -torch.inf
    level = (numbers - highest.masked_fill(none, 0.0)).masked_fill(none, 0.0)
    return none, level.clamp_min(torch.finfo(dtype).min / 2).to(dtype)


def of_keys(mask: Tensor, dtype: torch.dtype) -> bool:
    """Whether a mask can be one more feature: one row for all queries, boolean, or numbers in the range of bfloat16."""
    return mask.ndim > 1 and mask.shape[-2] == 1 and (mask.dtype == torch.bool or dtype == torch.bfloat16)


def as_features(mask: Tensor, how: How, dtype: torch.dtype) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Which queries have no key, and one more feature of queries and of keys [B or 1, H or 1, L, 1] for the mask."""
    far = FAR[dtype]
    if mask.dtype == torch.bool:
        keys = mask.transpose(-1, -2)
        some = keys.cumsum(dim=-2) > 0 if how.causal else keys.any(dim=-2, keepdim=True)
        own = torch.where(keys, 0.0, -far)
    else:
        none, bias = levelled(mask, torch.float32)
        some, own = ~none, (bias.transpose(-1, -2) / (how.scale * far)).clamp_min(-far)
    return ~some, (torch.where(some, far, 0.0).to(dtype), own.to(dtype))

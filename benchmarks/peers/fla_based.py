"""Causal Taylor attention of three terms by the kernels of flash-linear-attention, where it is installed."""

from __future__ import annotations

from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q, k [B, H, L, D], v [B, H, L, Dv]; its own order is [B, L, H, width]."""
    from fla.ops.based import fused_chunk_based

    out: Tensor = fused_chunk_based(*(each.transpose(1, 2) for each in (q, k, v)))
    return out.transpose(1, 2)

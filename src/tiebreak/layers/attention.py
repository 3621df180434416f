"""Scaled dot-product attention.

    Z = softmax(scale Q K^T) V,   scale = 1 / sqrt(D) unless given

Q [..., Lq, D] queries, K [..., Lk, D] keys, V [..., Lk, Dv] values, Z [..., Lq, Dv]; leading axes are equal. A mask is
boolean, broadcasts to [..., Lq, Lk], and True means "allowed", as in `F.scaled_dot_product_attention` (and unlike
`nn.MultiheadAttention`). `causal` allows the keys 0 to i to query i. A query without an allowed key gets zeros: a
padded sentence must not turn a whole batch into NaN.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.errors import TiebreakError
from tiebreak.layers.long_attention import attend_if_long


def attend(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """Attention in the form that is fastest where it is called; both forms compute the same.

    A run alone takes torch's kernel (one core, gradient included: the formula takes 1.0 to 1.7 times as long). Under
    vmap the kernel has no rule for its gradient and loops over the runs, while the formula becomes six products with
    the runs folded into the batch. Long sequences take the kernels there too, see `long_attention`.
    """
    _check(q, k, v, mask)
    # What autograd.Function checks before it searches for a vmap rule; there is no public name for it.
    if torch._C._are_functorch_transforms_active():
        long = attend_if_long(q, k, v, mask=mask, causal=causal, scale=scale)
        return long if long is not None else attend_naive(q, k, v, mask=mask, causal=causal, scale=scale)
    if q.ndim == 3:  # torch's fast kernels want an axis of heads
        mask = mask.unsqueeze(-3) if mask is not None and mask.ndim == 3 else mask
        q, k, v = (each.unsqueeze(-3) for each in (q, k, v))
        return attend(q, k, v, mask=mask, causal=causal, scale=scale).squeeze(-3)
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    allowed = _allowed(q, k, mask, causal)
    fully_masked = ~allowed.any(dim=-1, keepdim=True)
    # Fully masked queries attend to all keys and their result is dropped: kernels differ in what they return for them.
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed | fully_masked, scale=scale)
    return attended.masked_fill(fully_masked, 0.0)


def attend_naive(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """The formula as it stands: the reference, and the form that vmaps and traces."""
    _check(q, k, v, mask)
    scores = (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.mT
    if mask is None and not causal:
        return scores.softmax(dim=-1) @ v
    allowed = _allowed(q, k, mask, causal)
    # Added, not filled in, so that the gradient needs no second pass; finite, so that a fully masked row has a softmax.
    lowest = torch.finfo(scores.dtype).min / 2
    weights = (scores + torch.zeros_like(allowed, dtype=scores.dtype).masked_fill(~allowed, lowest)).softmax(dim=-1)
    return (weights @ v).masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)


def _allowed(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    if not causal:
        assert mask is not None
        return mask
    past = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return past if mask is None else past & mask


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    """Shapes and types only: nothing here waits for a device, and a trace sees nothing of it."""
    for name, each in (("queries", q), ("keys", k), ("values", v)):
        if each.ndim < 2:
            raise TiebreakError(f"{name} need the axes [..., length, width], and have {list(each.shape)}")
        if not each.is_floating_point():
            raise TiebreakError(f"{name} are {each.dtype}; attention needs floating-point numbers")
        if each.shape[-2] == 0:
            raise TiebreakError(f"{name} have length 0; attention needs at least one element")
    if q.shape[-1] != k.shape[-1]:
        raise TiebreakError(f"queries have width {q.shape[-1]} and keys {k.shape[-1]}; their product needs the same")
    if k.shape[-2] != v.shape[-2]:
        raise TiebreakError(f"there are {k.shape[-2]} keys and {v.shape[-2]} values; each key needs one value")
    if mask is not None:
        if mask.dtype != torch.bool:
            raise TiebreakError(f"the mask is {mask.dtype}; it must be boolean, True where a query may attend to a key")
        pairs = (q.shape[-2], k.shape[-2])
        if any(have not in (1, want) for have, want in zip(mask.shape[-2:][::-1], pairs[::-1], strict=False)):
            raise TiebreakError(
                f"a mask of {list(mask.shape)} does not fit {pairs[0]} queries and {pairs[1]} keys; "
                "its last two axes are [queries, keys], or 1"
            )

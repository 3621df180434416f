"""Torch's attention kernels that never hold the matrix of scores, forward and backward, as one function each.

    out = softmax(scale Q K^T + bias) V

q, k [B, H, L, D], v [B, H, Lk, D], bias [B or 1, H or 1, Lq or 1, Lk] in the type of q. Every kernel returns its result
and what its gradient needs: a logsumexp per query, with the batch as its first axis, and two tensors of random state,
which without dropout mean nothing. Kernels differ in what they take; `long_attention` knows.

| kernel | device | types | bias | products |
|---|---|---|---|---|
| flash | CUDA | bfloat16, float16 | no | summed in float32 |
| cudnn | CUDA | bfloat16, float16 | not used | summed in float32 |
| efficient | CUDA | these, float32 | yes | float32: three of TF32 (CUTLASS's OpMultiplyAddFastF32) |
| cpu | CPU | bfloat16, float32 | yes | summed in float32 |

They are called as torch's operators, not through `F.scaled_dot_product_attention`, which gives its logsumexp to nobody,
so that a gradient with a rule for vmap would have to repeat the forward. Inside a trace they stand as they are: torch
knows their shapes, and its compiler which strides they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Name = Literal["flash", "cudnn", "efficient", "cpu"]
Given = tuple[Tensor, Tensor, Tensor, Tensor | None]  # q, k, v, bias
Kept = tuple[Tensor, Tensor, Tensor]
ALIGNED, ALIGNED_BIAS = 8, 16  # elements: kernels of CUDA read rows of their arguments and of a bias in vectors
MOST_ROWS = 65535  # B of one launch on CUDA
aten = torch.ops.aten


@dataclass(frozen=True)
class How:
    """What a call computes besides its tensors."""

    kernel: Name
    causal: bool
    scale: float


def forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, how: How) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result [B, H, Lq, D] and what its gradient needs."""
    if q.is_cuda and q.shape[0] > MOST_ROWS:
        parts = [forward(*_part((q, k, v, bias), rows), how) for rows in _launches(q.shape[0])]
        out, norms = (torch.cat([part[place] for part in parts]) for place in (0, 1))
        return out, norms, *parts[0][2:]
    q, k, v = _in_rows(q), _in_rows(k), _in_rows(v)
    causal, scale = how.causal, how.scale
    if how.kernel == "flash":
        found = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)
        return found[0], found[1], found[6], found[7]
    if how.kernel == "cudnn":
        found = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False, scale=scale)
        return found[0], found[1], found[6], found[7]
    if how.kernel == "efficient":
        pairs = _aligned(bias, q, k)
        return aten._scaled_dot_product_efficient_attention(q, k, v, pairs, True, 0.0, causal, scale=scale)  # type: ignore[no-any-return]
    pairs = _spread(bias, q, k)
    out, norms = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=pairs, scale=scale)
    return out, norms, q.new_empty(0), q.new_empty(0)


def backward(given: Given, out: Tensor, kept: Kept, above: Tensor, how: How) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; `above` is that of the result. A bias has none."""
    bias, (norms, seed, offset) = given[3], kept
    if above.is_cuda and above.shape[0] > MOST_ROWS:
        parts = [
            backward(_part(given, rows), out[rows], (norms[rows], seed, offset), above[rows], how)
            for rows in _launches(above.shape[0])
        ]
        dq, dk, dv = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
        return dq, dk, dv
    q, k, v, above = (_in_rows(each) for each in (*given[:3], above))
    causal, scale, lengths = how.causal, how.scale, (q.shape[2], k.shape[2])
    if how.kernel == "flash":
        return aten._scaled_dot_product_flash_attention_backward(  # type: ignore[no-any-return]
            above, q, k, v, out, norms, None, None, *lengths, 0.0, causal, seed, offset, scale=scale
        )
    if how.kernel == "cudnn":
        return aten._scaled_dot_product_cudnn_attention_backward(  # type: ignore[no-any-return]
            above, q, k, v, out, norms, seed, offset, None, None, None, *lengths, 0.0, causal, scale=scale
        )
    if how.kernel == "efficient":
        wanted, pairs = [True, True, True, False], _aligned(bias, q, k)
        found = aten._scaled_dot_product_efficient_attention_backward(
            above, q, k, v, pairs, as_written(out), norms, seed, offset, 0.0, wanted, causal, scale=scale
        )
        return found[0], found[1], found[2]
    return aten._scaled_dot_product_flash_attention_for_cpu_backward(  # type: ignore[no-any-return]
        above, q, k, v, out, norms, 0.0, causal, attn_mask=_spread(bias, q, k), scale=scale
    )


def as_written(out: Tensor) -> Tensor:
    """A result as `efficient` leaves it in memory, [B, Lq, H, D].

    Its backward asks the tensor for the strides of B and H, and takes that of Lq to be H times D.
    """
    return out.transpose(1, 2).contiguous().transpose(1, 2)


def _launches(rows: int) -> list[slice]:
    return [slice(start, start + MOST_ROWS) for start in range(0, rows, MOST_ROWS)]


def _part(given: Given, rows: slice) -> Given:
    q, k, v, bias = given
    return q[rows], k[rows], v[rows], bias if bias is None or bias.shape[0] == 1 else bias[rows]


def _in_rows(x: Tensor) -> Tensor:
    aligned = not x.is_cuda or all(step % ALIGNED == 0 for step in (*x.stride()[:-1], x.storage_offset()))
    return x if x.stride(-1) == 1 and aligned else x.contiguous()


def _spread(bias: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """A bias of every pair, without a copy."""
    return None if bias is None else bias.expand(*q.shape[:3], k.shape[2])


def _aligned(bias: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """A bias of every pair whose rows begin at multiples of 16 elements."""
    if bias is None:
        return None
    length = bias.shape[-1]
    whole = F.pad(bias, (0, -length % ALIGNED_BIAS)).contiguous()
    return _spread(whole[..., :length], q, k)

"""One token of Taylor attention for many heads on a GPU: the state is read once, changed where it lies, written once.

    S[f, :] += m_f(k) [v, 1],   result = sum_f weight_f m_f(q) S[f, :]   without its last entry, divided by it

S [heads, M, Dv + 1] float32, as `taylor.init_state` makes it; m the monomials in the order of `taylor_forms.tables`.
One program per head. At D = 16, Dv = 64 a state has 39,780 bytes: 2,048 heads move 163 MB, 38 microseconds at 4.3 TB/s,
and do 60 M multiply-adds, which is nothing. Fewer than 132 heads do not fill the machine.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# ruff: noqa: PLR0913, PLR0917
ROWS, WARPS = 32, 4  # of the state at once


@triton.jit
def _monomials(x, scale, first, rest, inside, f, D: tl.constexpr):
    """1, the entries, and the products of two of them, for rows f of the state."""
    left = tl.load(x + first, mask=inside & (f > 0), other=0.0).to(tl.float32) * scale
    right = tl.load(x + rest, mask=inside & (f > D), other=0.0).to(tl.float32) * scale
    return tl.where(f > D, left * right, tl.where(f > 0, left, 1.0))


@triton.jit
def _decode(
    state, q, k, v, may, out, firsts, rests, weights, scale,
    D: tl.constexpr, V: tl.constexpr, VP: tl.constexpr, M: tl.constexpr, MASKED: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    state += head * M * (V + 1)
    column = tl.arange(0, VP)
    value = tl.load(v + head * V + column, mask=column < V, other=0.0).to(tl.float32)
    here = 1.0
    if MASKED:
        here = tl.load(may + head).to(tl.float32)
        value = tl.where(here > 0, value, 0.0)
    sums, norm, seen = tl.zeros((VP,), tl.float32), 0.0, 0.0
    for start in range(0, M, R):
        f = start + tl.arange(0, R)
        inside = f < M
        first, rest = tl.load(firsts + f, mask=inside, other=0), tl.load(rests + f, mask=inside, other=0)
        keys = _monomials(k + head * D, 1.0, first, rest, inside, f, D)
        if MASKED:
            keys = tl.where(here > 0, keys, 0.0)
        queries = _monomials(q + head * D, scale, first, rest, inside, f, D)
        queries *= tl.load(weights + f, mask=inside, other=0.0)
        where = state + f[:, None] * (V + 1) + column[None, :]
        both = inside[:, None] & (column < V)[None, :]
        rows = tl.load(where, mask=both, other=0.0) + keys[:, None] * value[None, :]
        tl.store(where, rows, mask=both)
        last = tl.load(state + f * (V + 1) + V, mask=inside, other=0.0) + keys
        tl.store(state + f * (V + 1) + V, last, mask=inside)
        sums += tl.sum(queries[:, None] * rows, axis=0)
        norm += tl.sum(tl.where(inside, queries * last, 0.0), axis=0)
        seen += tl.sum(tl.where(f == 0, last, 0.0), axis=0)
    norm = tl.maximum(norm, 0.5 * seen)
    norm = tl.where(seen > 0, norm, 1.0)
    tl.store(out + head * V + column, sums / norm, mask=column < V)


def decode(
    state: Tensor, token: tuple[Tensor, Tensor, Tensor], may: Tensor | None, scale: float, table: tuple[Tensor, ...]
) -> Tensor:
    """The result [heads, Dv] of q, k [heads, D], v [heads, Dv]; `state` is updated. `table`: first, rest, weight."""
    q, k, v = token
    heads, values = v.shape
    out = torch.empty_like(v)
    _decode[(heads,)](
        state, q, k, v, state if may is None else may.view(torch.uint8), out, *table, scale,
        q.shape[1], values, max(16, triton.next_power_of_2(values)), state.shape[1], may is not None, ROWS,
        num_warps=WARPS,
    )  # fmt: skip
    return out

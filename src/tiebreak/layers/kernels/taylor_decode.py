"""One token of Taylor attention for many heads on a GPU: the state is read once, changed where it lies, written once.

    S[f, :] += m_f(k) [v, 1],   result = sum_f weight_f m_f(q) S[f, :]   without its last entry, divided by it

S [heads, M, Dv + 1] float32, as `taylor.init_state` makes it; m the monomials in the order of `taylor_forms.tables`.
One program per head. At D = 16, Dv = 64 a state has 39,780 bytes: 2,048 heads move 163 MB, 38 microseconds at 4.3 TB/s,
and do 60 M multiply-adds, which is nothing. A program makes the features of all rows once and goes through
the columns: rows of 65 numbers cannot be read four at a time, so the next columns are read before these are written.
The last column, which makes the normaliser, is read whole, before any of it is written: where a tile has fewer entries
than a program has threads, several threads read the same entry, and one of them could read what another has written.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.taylor_launch import Constants, launch
from tiebreak.layers.kernels.taylor_plan import power_of_2

# ruff: noqa: PLR0913, PLR0917
FEW = 528  # heads: four programs on each of 132 multiprocessors
TILE = 16384  # numbers of the state at once, at most: 64 a thread
BLOCKS = {"few": (64, 8), "many": (64, 4)}  # columns of the state at once, warps


@triton.jit
def _monomials(x, scale, first, rest, inside, f, D: tl.constexpr):
    """1, the entries, and the products of two of them, for rows f of the state."""
    left = tl.load(x + first, mask=inside & (f > 0), other=0.0).to(tl.float32) * scale
    right = tl.load(x + rest, mask=inside & (f > D), other=0.0).to(tl.float32) * scale
    return tl.where(f > D, left * right, tl.where(f > 0, left, 1.0))


@triton.jit
def _features(q, k, firsts, rests, weights, scale, here, f, D: tl.constexpr, M: tl.constexpr, MASKED: tl.constexpr):
    """Weighted monomials of q and those of k, for rows f of the state; 0 after the last row."""
    inside = f < M
    first, rest = tl.load(firsts + f, mask=inside, other=0), tl.load(rests + f, mask=inside, other=0)
    keys = tl.where(inside, _monomials(k, 1.0, first, rest, inside, f, D), 0.0)
    if MASKED:
        keys = tl.where(here > 0, keys, 0.0)
    queries = _monomials(q, scale, first, rest, inside, f, D)
    return queries * tl.load(weights + f, mask=inside, other=0.0), keys


@triton.jit
def _decode(
    state, q, k, v, may, out, firsts, rests, weights, scale,
    D: tl.constexpr, V: tl.constexpr, VP: tl.constexpr, M: tl.constexpr, MP: tl.constexpr,
    MASKED: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    state += head * M * (V + 1)
    q += head * D
    k += head * D
    f, column = tl.arange(0, MP), tl.arange(0, C)
    inside = f < M
    where = state + f[:, None] * (V + 1) + column[None, :]
    rows = tl.load(where, mask=inside[:, None] & (column < V)[None, :], other=0.0)
    last = tl.load(state + f * (V + 1) + V, mask=inside, other=0.0)
    here = 1.0
    if MASKED:
        here = tl.load(may + head).to(tl.float32)
    queries, keys = _features(q, k, firsts, rests, weights, scale, here, f, D, M, MASKED)
    last += keys
    norm, seen = tl.sum(queries * last, axis=0), tl.sum(tl.where(f == 0, last, 0.0), axis=0)
    norm = tl.where(seen > 0, tl.maximum(norm, 0.5 * seen), 1.0)
    tl.debug_barrier()
    tl.store(state + f * (V + 1) + V, last, mask=inside)
    for start in tl.static_range(0, VP, C):
        at = start + column
        if start + C < VP:
            following = tl.load(where + C, mask=inside[:, None] & (at + C < V)[None, :], other=0.0)
        value = tl.load(v + head * V + at, mask=at < V, other=0.0).to(tl.float32)
        if MASKED:
            value = tl.where(here > 0, value, 0.0)
        rows += keys[:, None] * value[None, :]
        tl.store(where, rows, mask=inside[:, None] & (at < V)[None, :])
        tl.store(out + head * V + at, tl.sum(queries[:, None] * rows, axis=0) / norm, mask=at < V)
        if start + C < VP:
            rows = following
            where += C


@lru_cache
def constants(d: int, values: int, size: int, masked: bool, blocks: tuple[int, int]) -> Constants:
    """What the kernel is compiled for; `size` is that of a state, M."""
    columns, warps = blocks
    padded, rows = max(16, power_of_2(values)), max(power_of_2(size), 32 * warps)
    named = {
        "D": d,
        "V": values,
        "VP": padded,
        "M": size,
        "MP": rows,
        "MASKED": masked,
        "C": min(columns, padded, max(4, TILE // rows)),
    }
    return Constants(named, {"num_warps": warps})


def decode(
    state: Tensor,
    token: tuple[Tensor, Tensor, Tensor],
    may: Tensor | None,
    scale: float,
    table: tuple[Tensor, ...],
    blocks: tuple[int, int] | None = None,
) -> Tensor:
    """The result [heads, Dv] of q, k [heads, D], v [heads, Dv]; `state` is updated. `table`: first, rest, weight."""
    q, k, v = token
    heads, values = v.shape
    out = torch.empty_like(v)
    mask = state if may is None else may.view(torch.uint8)
    blocks = blocks or BLOCKS["few" if heads < FEW else "many"]
    how = constants(q.shape[1], values, state.shape[1], may is not None, blocks)
    launch(_decode, (heads, 1), (state, q, k, v, mask, out, *table), (scale,), how)
    return out

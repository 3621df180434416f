"""Pass 2 of Taylor attention on a GPU: the results of a tile of queries, divided by their normalisers.

    N_i = sum over keys j <= i of i's segment of  p(s q_i . k_j) [v_j, 1]  +  phi(q_i) . [S, z]

Without `causal` there is no first part and S holds all keys. The normaliser n, the last entry of N, is a float32 sum
of unrounded weights. It is at least half the number of keys seen, as three terms are; rounding cannot take it below.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.taylor_features import (
    allowed,
    hide,
    low,
    narrow,
    pick,
    plus_times,
    polynomial,
    put,
    quadratic,
    tile,
    times,
)
from tiebreak.layers.kernels.taylor_launch import launch
from tiebreak.layers.kernels.taylor_plan import Plan, lines
from tiebreak.layers.kernels.taylor_states import states

# ruff: noqa: PLR0913, PLR0917


@triton.jit
def _read(
    x, first, second, one_first, one_second, states, norms, start, sums, norm,
    W: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr,
    LOW: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add what a block of W features of the state gives to the queries x."""
    f, column = start + tl.arange(0, W), tl.arange(0, VP)
    left = times(x, pick(first, W, DP, TYPE), PRECISION)
    right = times(x, pick(second, W, DP, TYPE), PRECISION)
    if LOW:
        left += one_first[None, :]
        right += one_second[None, :]
    features = left * right
    state = tl.load(states + f[:, None] * V + column[None, :], mask=(column < V)[None, :], other=0.0).to(TYPE)
    norm += tl.sum(features * tl.load(norms + f)[None, :], axis=1)
    return plus_times(narrow(features, TYPE, PRECISION), state, sums, PRECISION), norm


@triton.jit
def _look(
    x, k, v, may, i, other, k_l, v_l, may_l, length, scale, sums, norm, seen,
    D: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr,
    PRECISION: tl.constexpr, DIAGONAL: tl.constexpr, MASKED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Add what the keys other ... other + N - 1 give to the queries x."""
    y = tile(k, other, k_l, length, N, D, DP, TYPE)
    values = tile(v, other, v_l, length, N, V, VP, TYPE)
    if MASKED:
        here = allowed(may, other, may_l, length, N)
        y, values = hide(y, here), hide(values, here)
    weights = polynomial(times(x, tl.trans(y), PRECISION), scale, TERMS)
    if DIAGONAL:
        past = i[:, None] >= (other + tl.arange(0, N))[None, :]
        if MASKED:
            past = past & here[None, :]
            seen += tl.sum(past.to(tl.float32), axis=1)
        weights = tl.where(past, weights, 0.0)
    elif MASKED:
        weights = tl.where(here[None, :], weights, 0.0)
        seen += tl.sum(here.to(tl.float32), axis=0)
    norm += tl.sum(weights, axis=1)
    return plus_times(narrow(weights, TYPE, PRECISION), values, sums, PRECISION), norm, seen


@triton.jit
def _forward(
    q, k, v, may, out, inverse, states, norms,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, may_b, may_h, may_l,
    heads, length, keys, slots, scale,
    D: tl.constexpr, V: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr,
    WL: tl.constexpr, F: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(length, M)
    row, head = tl.program_id(0) % tiles * M, (tl.program_id(0) // tiles).to(tl.int64)
    b, h = head // heads, head % heads
    k += b * k_b + h * k_h
    v += b * v_b + h * v_h
    may += b * may_b + h * may_h
    x = tile(q + b * q_b + h * q_h, row, q_l, length, M, D, DP, TYPE)
    i = row + tl.arange(0, M)
    sums, norm = tl.zeros((M, VP), tl.float32), tl.zeros((M,), tl.float32)
    seen = tl.zeros((M,), tl.float32) + keys
    segment = row // T
    if CAUSAL:
        seen = (i + 1).to(tl.float32)
    if MASKED:
        seen = tl.zeros((M,), tl.float32)
    slot = 0
    if CAUSAL:
        slot = segment - 1
    if slot >= 0:
        states += (head * slots + slot) * F * V
        norms += (head * slots + slot) * F
        if TERMS == 3:
            for start in range(0, F - WL, W):
                first, second, weight = quadratic(start, scale, W, DF)
                sums, norm = _read(
                    x, first, second, weight, weight, states, norms, start, sums, norm,
                    W, V, DP, VP, False, TYPE, PRECISION,
                )  # fmt: skip
        first, second, one_first, one_second, weight = low(scale, WL, DF, TERMS)
        sums, norm = _read(
            x, first, second, one_first, one_second, states, norms, F - WL, sums, norm,
            WL, V, DP, VP, True, TYPE, PRECISION,
        )  # fmt: skip
        if MASKED:
            seen += tl.load(norms + (F - WL + DF // 2 + DF))  # of the feature that is 1
    if CAUSAL:
        for other in range(segment * T, row, N):  # whole tiles before the diagonal
            sums, norm, seen = _look(
                x, k, v, may, i, other, k_l, v_l, may_l, length, scale, sums, norm, seen,
                D, V, DP, VP, TERMS, TYPE, PRECISION, False, MASKED, N,
            )  # fmt: skip
        for other in range(row, tl.minimum(row + M, length), N):
            sums, norm, seen = _look(
                x, k, v, may, i, other, k_l, v_l, may_l, length, scale, sums, norm, seen,
                D, V, DP, VP, TERMS, TYPE, PRECISION, True, MASKED, N,
            )  # fmt: skip
    if TERMS == 3:
        norm = tl.maximum(norm, 0.5 * seen)
    one = 1.0 / tl.where(seen > 0, norm, 1.0)
    result = sums * one[:, None]
    if out.dtype.element_ty == tl.float16:  # a mean of values: what leaves the range is rounding of long q and k
        result = tl.minimum(tl.maximum(result, -65504.0), 65504.0)
    result = narrow(result, TYPE, PRECISION)
    put(out + head * length * V, result, row, V, length, M, V, VP)
    tl.store(inverse + head * length + i, one, mask=i < length)


def forward(plan: Plan, q: Tensor, k: Tensor, v: Tensor, may: Tensor | None) -> tuple[Tensor, Tensor]:
    """The result [B, H, Lq, Dv] and 1 / n [B, H, Lq] of q, k, v [B, H, L, width] and `may` [B, H, Lk]."""
    batch, heads, length, _ = q.shape
    keys = k.shape[2]
    out = torch.empty(batch, heads, length, plan.v, dtype=q.dtype, device=q.device)
    inverse = torch.empty(batch, heads, length, dtype=torch.float32, device=q.device)
    slots = plan.slots(keys)
    kept, norms = states(plan, k, v, may) if slots else (out, inverse)
    mask, steps = (inverse, (0, 0, 0)) if may is None else (may.view(torch.uint8), may.stride())
    launch(
        _forward, (batch * heads * -(-length // plan.tuning["forward"].rows), 1),
        (q, k, v, mask, out, inverse, kept, norms),
        (*lines(q), *lines(k), *lines(v), *steps, heads, length, keys, slots, plan.scale),
        plan.tile_constants("forward", may is not None),
    )  # fmt: skip
    return out, inverse

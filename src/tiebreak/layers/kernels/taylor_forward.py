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
    block,
    copied_rows,
    hide,
    low_factors,
    narrow,
    pairs,
    pick,
    plus_times,
    polynomial,
    put,
    quadratic,
    tile,
    times,
)
from tiebreak.layers.kernels.taylor_launch import described, launch
from tiebreak.layers.kernels.taylor_plan import Plan, lines
from tiebreak.layers.kernels.taylor_states import states

# ruff: noqa: PLR0912, PLR0913, PLR0915, PLR0917


@triton.jit
def _read(features, state, norms, sums, norm, TYPE: tl.constexpr, PRECISION: tl.constexpr):
    """Add what a block of features of the state gives to the queries whose features these are."""
    norm += tl.sum(features * norms[None, :], axis=1)
    return plus_times(narrow(features, TYPE, PRECISION), state.to(TYPE), sums, PRECISION), norm


@triton.jit
def _look(
    x, y, values, here, i, other, scale, sums, norm, seen,
    TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    DIAGONAL: tl.constexpr, MASKED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Add what the keys other ... other + N - 1 give to the queries x."""
    if MASKED:
        y, values = hide(y, here), hide(values, here)
    weights = polynomial(times(x, tl.trans(y.to(TYPE)), PRECISION), scale, TERMS)
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
    return plus_times(narrow(weights, TYPE, PRECISION), values.to(TYPE), sums, PRECISION), norm, seen


@triton.jit
def _forward(
    q, k, v, may, out, inverse, states, norms,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, may_b, may_h, may_l,
    heads, length, keys, slots, scale,
    D: tl.constexpr, V: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr,
    WL: tl.constexpr, F: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr, W: tl.constexpr,
    COPIED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(length, M)
    row, head = tl.program_id(0) % tiles * M, (tl.program_id(0) // tiles).to(tl.int64)
    b, h = head // heads, head % heads
    if not COPIED:  # descriptors are of all heads
        k += b * k_b + h * k_h
        v += b * v_b + h * v_h
    may += b * may_b + h * may_h
    x = tile(q + b * q_b + h * q_h, row, q_l, length, M, D, DP).to(TYPE)
    i = row + tl.arange(0, M)
    sums, norm = tl.zeros((M, VP), tl.float32), tl.zeros((M,), tl.float32)
    seen = tl.zeros((M,), tl.float32) + keys
    segment = row // T
    end = tl.minimum(row + M, length)
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
        low_state, low_norms = block(states, norms, F - WL, F, WL, V, VP)
        if TERMS == 3:  # every block is loaded before the products of the one before it
            state, z = block(states, norms, 0, F - WL, W, V, VP)
        low_left, low_right, _, _ = low_factors(x, scale, WL, DF, DP, TERMS, TYPE, PRECISION)
        sums, norm = _read(low_left * low_right, low_state, low_norms, sums, norm, TYPE, PRECISION)
        if TERMS == 3:
            first, _, _ = quadratic(0, scale, W, DF)
            left = times(x, pick(first, W, DP, TYPE), PRECISION)  # of every block
            for start in range(0, F - WL, W):
                later, later_z = block(states, norms, start + W, F - WL, W, V, VP)
                _, second, _ = quadratic(start, scale, W, DF)
                right = times(x, pick(second, W, DP, TYPE), PRECISION)
                sums, norm = _read(left * right, state, z, sums, norm, TYPE, PRECISION)
                state, z = later, later_z
        if MASKED:
            seen += tl.load(norms + (F - WL + DF // 2 + DF))  # of the feature that is 1
    if CAUSAL:
        for other in tl.range(segment * T, row, N, num_stages=STAGES):  # whole tiles before the diagonal
            if COPIED:
                y, values, here = copied_rows(k, b, h, other, N, DP), copied_rows(v, b, h, other, N, VP), i
            else:
                y, values, here = pairs(k, v, may, other, k_l, v_l, may_l, length, D, V, DP, VP, MASKED, N)
            sums, norm, seen = _look(
                x, y, values, here, i, other, scale, sums, norm, seen, TERMS, TYPE, PRECISION, False, MASKED, N
            )
        for other in tl.range(row, end, N, num_stages=STAGES):
            if COPIED:
                y, values, here = copied_rows(k, b, h, other, N, DP), copied_rows(v, b, h, other, N, VP), i
            else:
                y, values, here = pairs(k, v, may, other, k_l, v_l, may_l, length, D, V, DP, VP, MASKED, N)
            sums, norm, seen = _look(
                x, y, values, here, i, other, scale, sums, norm, seen, TERMS, TYPE, PRECISION, True, MASKED, N
            )
    if TERMS == 3:
        norm = tl.maximum(norm, 0.5 * seen)
    one = 1.0 / tl.where(seen > 0, norm, 1.0)
    result = sums * one[:, None]
    if out.dtype.element_ty == tl.float16:  # a mean of values: what leaves the range is rounding of long q and k
        result = tl.minimum(tl.maximum(result, -65504.0), 65504.0)
    result = narrow(result, TYPE, PRECISION)
    put(out + head * length * V, result, row, V, length, M, V, VP)
    tl.store(inverse + head * length + i, one, mask=i < length)


def forward(plan: Plan, q: Tensor, k: Tensor, v: Tensor, may: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result [B, H, Lq, Dv] of q, k, v [B, H, L, width] and `may` [B, H, Lk], and what its gradient needs.

    That is 1 / n [B, H, Lq], and the states [B, H, slots, F, Dv] with their norms [B, H, slots, F].
    """
    batch, heads, length, _ = q.shape
    keys = k.shape[2]
    out = torch.empty(batch, heads, length, plan.v, dtype=q.dtype, device=q.device)
    inverse = torch.empty(batch, heads, length, dtype=torch.float32, device=q.device)
    kept, norms = states(plan, k, v, may)
    tuned = plan.tuning["forward"]
    keys_and_values, copied = described(plan.copied("forward"), may, (k, plan.dp), (v, plan.vp))
    mask, steps = (inverse, (0, 0, 0)) if may is None else (may.view(torch.uint8), may.stride())
    launch(
        _forward, (batch * heads * -(-length // tuned.rows), 1),
        (q, *keys_and_values, mask, out, inverse, kept, norms),
        (*lines(q), *lines(k), *lines(v), *steps, heads, length, keys, plan.slots(keys), plan.scale),
        plan.tile_constants("forward", may is not None, copied),
    )  # fmt: skip
    return out, inverse, kept, norms

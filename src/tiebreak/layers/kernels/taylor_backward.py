"""The gradients of Taylor attention on a GPU: weights are computed again, states were kept.

    dN_i = [g_i, -delta_i] / n_i,   delta_i = g_i . result_i
    dq_i = sum_j s p'(s q_i . k_j) (g_i . v_j - delta_i) / n_i  k_j     + pulled back from  S [g_i, -delta_i] / n_i
    dk_j = sum_i s p'(s q_i . k_j) (g_i . v_j - delta_i) / n_i  q_i     + pulled back from  G [v_j, 1]
    dv_j = sum_i p(s q_i . k_j) / n_i  g_i                              + G^T phi(k_j)

Sums over j <= i of one segment; S the state of the keys before it, G = sum phi(q_i) dN_i over the queries after it.
`queries` makes dq and delta / n, `keys` dk and dv.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.taylor_features import (
    allowed,
    block,
    entries,
    hide,
    low_factors,
    narrow,
    pairs,
    pick,
    plus_times,
    polynomial,
    put,
    quadratic,
    slope,
    tile,
    times,
)
from tiebreak.layers.kernels.taylor_launch import launch
from tiebreak.layers.kernels.taylor_plan import Plan, lines
from tiebreak.layers.kernels.taylor_states import states

# ruff: noqa: PLR0913, PLR0917


@triton.jit
def _above(
    features, y, c, state, norms, dy, VALUES: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    """U = [y, c] . [S, z] of a block of features, and dy + features . S (if VALUES)."""
    state = state.to(TYPE)
    if VALUES:
        dy = plus_times(narrow(features, TYPE, PRECISION), state, dy, PRECISION)
    return times(y, tl.trans(state), PRECISION) + c[:, None] * norms[None, :], dy


@triton.jit
def _pull_back(
    x, y, c, states, norms, scale, dx, dy,
    V: tl.constexpr, VP: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr, WL: tl.constexpr, F: tl.constexpr,
    W: tl.constexpr, TERMS: tl.constexpr, VALUES: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add to dx what all features pass on of U = [y, c] . [S, z], and to dy (if VALUES) phi(x) . S.

    The first entries of the pairs are the same in every block, so their gradient U * x P2 is summed before P1^T.
    """
    low_state, low_norms = block(states, norms, F - WL, F, WL, V, VP)
    left, right, pick_left, pick_right = low_factors(x, scale, WL, DF, DP, TERMS, TYPE, PRECISION)
    above, dy = _above(left * right, y, c, low_state, low_norms, dy, VALUES, TYPE, PRECISION)
    dx = plus_times(narrow(above * right, TYPE, PRECISION), tl.trans(pick_left), dx, PRECISION)
    dx = plus_times(narrow(above * left, TYPE, PRECISION), tl.trans(pick_right), dx, PRECISION)
    if TERMS == 3:
        index, _, _ = quadratic(0, scale, W, DF)
        pick_first = pick(index, W, DP, TYPE)
        first, total = times(x, pick_first, PRECISION), tl.zeros((x.shape[0], W), tl.float32)
        for start in range(0, F - WL, W):
            state, z = block(states, norms, start, F - WL, W, V, VP)
            _, other, _ = quadratic(start, scale, W, DF)
            pick_second = pick(other, W, DP, TYPE)
            second = times(x, pick_second, PRECISION)
            asked, dy = _above(first * second, y, c, state, z, dy, VALUES, TYPE, PRECISION)
            total += asked * second
            dx = plus_times(narrow(asked * first, TYPE, PRECISION), tl.trans(pick_second), dx, PRECISION)
        dx = plus_times(narrow(total, TYPE, PRECISION), tl.trans(pick_first), dx, PRECISION)
    return dx, dy


@triton.jit
def _past(
    x, above, c, y, values, here, i, other, scale, dx,
    TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    DIAGONAL: tl.constexpr, MASKED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Add to dx, of queries, what the keys other ... other + N - 1 ask."""
    if MASKED:
        y, values = hide(y, here), hide(values, here)
    y = y.to(TYPE)
    slopes = slope(times(x, tl.trans(y), PRECISION), scale, TERMS)
    slopes *= times(above, tl.trans(values.to(TYPE)), PRECISION) - c[:, None]
    if DIAGONAL:  # a masked key is 0 and adds nothing to dx
        slopes = tl.where(i[:, None] >= (other + tl.arange(0, N))[None, :], slopes, 0.0)
    return plus_times(narrow(slopes, TYPE, PRECISION), y, dx, PRECISION)


@triton.jit
def _asked(
    q, g, inverse, delta, start, q_l, g_l, length,
    D: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """N queries, the gradients of their results, 1 / n and delta / n."""
    x, above = tile(q, start, q_l, length, N, D, DP), tile(g, start, g_l, length, N, V, VP)
    return x, above, entries(inverse, start, length, 0.0, N), entries(delta, start, length, 0.0, N)


@triton.jit
def _future(
    y, values, x, above, one, c, j, other, scale, dy, dvalues,
    TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr, DIAGONAL: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Add to dy, of keys, and dvalues what the queries other ... other + N - 1 ask. Keys lie along the rows."""
    x, above = x.to(TYPE), above.to(TYPE)
    scores = times(y, tl.trans(x), PRECISION)
    slopes = times(values, tl.trans(above), PRECISION)
    slopes = (slopes * one[None, :] - c[None, :]) * slope(scores, scale, TERMS)
    weights = polynomial(scores, scale, TERMS) * one[None, :]
    if DIAGONAL:
        past = j[:, None] <= (other + tl.arange(0, N))[None, :]
        slopes, weights = tl.where(past, slopes, 0.0), tl.where(past, weights, 0.0)
    dvalues = plus_times(narrow(weights, TYPE, PRECISION), above, dvalues, PRECISION)
    return plus_times(narrow(slopes, TYPE, PRECISION), x, dy, PRECISION), dvalues


@triton.jit
def _queries(
    q, k, v, may, g, out, inverse, delta, dq, states, norms,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, may_b, may_h, may_l, g_b, g_h, g_l,
    heads, length, slots, scale,
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
    x = tile(q + b * q_b + h * q_h, row, q_l, length, M, D, DP).to(TYPE)
    above = tile(g + b * g_b + h * g_h, row, g_l, length, M, V, VP).to(TYPE)
    result = tile(out + head * length * V, row, V, length, M, V, VP)
    one = entries(inverse + head * length, row, length, 1.0, M)
    segment = row // T
    end = tl.minimum(row + M, length)
    i = row + tl.arange(0, M)
    c = tl.sum(result.to(tl.float32) * above.to(tl.float32), axis=1)
    tl.store(delta + head * length + i, c * one, mask=i < length)
    gradient, nothing = tl.zeros((M, DP), tl.float32), tl.zeros((M,), tl.float32)
    slot = 0
    if CAUSAL:
        slot = segment - 1
    if slot >= 0:
        gradient, nothing = _pull_back(
            x, above, -c, states + (head * slots + slot) * F * V, norms + (head * slots + slot) * F, scale,
            gradient, nothing, V, VP, DF, DP, WL, F, W, TERMS, False, TYPE, PRECISION,
        )  # fmt: skip
    if CAUSAL:
        for other in range(segment * T, row, N):
            y, values, here = pairs(k, v, may, other, k_l, v_l, may_l, length, D, V, DP, VP, MASKED, N)
            gradient = _past(
                x, above, c, y, values, here, i, other, scale, gradient, TERMS, TYPE, PRECISION, False, MASKED, N
            )
        for other in range(row, end, N):
            y, values, here = pairs(k, v, may, other, k_l, v_l, may_l, length, D, V, DP, VP, MASKED, N)
            gradient = _past(
                x, above, c, y, values, here, i, other, scale, gradient, TERMS, TYPE, PRECISION, True, MASKED, N
            )
    gradient *= one[:, None]
    put(dq + head * length * D, narrow(gradient, TYPE, PRECISION), row, D, length, M, D, DP)


@triton.jit
def _keys(
    q, k, v, may, g, inverse, delta, dk, dv, states, norms,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, may_b, may_h, may_l, g_b, g_h, g_l,
    heads, length, slots, scale,
    D: tl.constexpr, V: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr,
    WL: tl.constexpr, F: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(length, M)
    row, head = tl.program_id(0) % tiles * M, (tl.program_id(0) // tiles).to(tl.int64)
    b, h = head // heads, head % heads
    q += b * q_b + h * q_h
    g += b * g_b + h * g_h
    inverse += head * length
    delta += head * length
    y = tile(k + b * k_b + h * k_h, row, k_l, length, M, D, DP).to(TYPE)
    values = tile(v + b * v_b + h * v_h, row, v_l, length, M, V, VP).to(TYPE)
    j = row + tl.arange(0, M)
    dy, dvalues = tl.zeros((M, DP), tl.float32), tl.zeros((M, VP), tl.float32)
    segment = row // T
    end = tl.minimum(segment * T + T, length)
    slot = 0
    if CAUSAL:
        slot = segment
    if slot < slots:
        dy, dvalues = _pull_back(
            y, values, tl.full((M,), 1.0, tl.float32),
            states + (head * slots + slot) * F * V, norms + (head * slots + slot) * F, scale,
            dy, dvalues, V, VP, DF, DP, WL, F, W, TERMS, True, TYPE, PRECISION,
        )  # fmt: skip
    if CAUSAL:
        for other in range(row, tl.minimum(row + M, end), N):
            x, above, one, c = _asked(q, g, inverse, delta, other, q_l, g_l, end, D, V, DP, VP, N)
            dy, dvalues = _future(
                y, values, x, above, one, c, j, other, scale, dy, dvalues, TERMS, TYPE, PRECISION, True, N
            )
        for other in range(row + M, end, N):
            x, above, one, c = _asked(q, g, inverse, delta, other, q_l, g_l, end, D, V, DP, VP, N)
            dy, dvalues = _future(
                y, values, x, above, one, c, j, other, scale, dy, dvalues, TERMS, TYPE, PRECISION, False, N
            )
    if MASKED:
        here = allowed(may + b * may_b + h * may_h, row, may_l, length, M)[:, None]
        dy, dvalues = tl.where(here, dy, 0.0), tl.where(here, dvalues, 0.0)
    put(dk + head * length * D, narrow(dy, TYPE, PRECISION), row, D, length, M, D, DP)
    put(dv + head * length * V, narrow(dvalues, TYPE, PRECISION), row, V, length, M, V, VP)


def backward(
    plan: Plan, q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, result: tuple[Tensor, ...], g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; `result` is what `forward` returned, g [B, H, Lq, Dv] the gradient of its first part."""
    out, inverse, *kept = result
    dq, dk, dv = (torch.empty(each.shape, dtype=each.dtype, device=each.device) for each in (q, k, v))
    delta = torch.empty_like(inverse)
    mask, steps = (inverse, (0, 0, 0)) if may is None else (may.view(torch.uint8), may.stride())
    strides = (*lines(q), *lines(k), *lines(v), *steps, *lines(g))

    def tiles(name: str, kernel: object, length: int, others: int, tensors: tuple[Tensor, ...]) -> None:
        launch(
            kernel, (plan.batch * plan.heads * -(-length // plan.tuning[name].rows), 1),
            (q, k, v, mask, g, *tensors), (*strides, plan.heads, length, plan.slots(others), plan.scale),
            plan.tile_constants(name, may is not None),
        )  # fmt: skip

    queries, keys = q.shape[2], k.shape[2]
    tiles("queries", _queries, queries, keys, (out, inverse, delta, dq, *kept))
    asked = states(plan, q, g, gradient=(inverse, delta))
    tiles("keys", _keys, keys, queries, (inverse, delta, dk, dv, *asked))
    return dq, dk, dv

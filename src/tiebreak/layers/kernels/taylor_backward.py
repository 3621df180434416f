"""The gradients of Taylor attention on a GPU: weights and states are computed again, nothing of them was kept.

    dN_i = [g_i, -delta_i] / n_i,   delta_i = g_i . result_i
    dq_i = sum_j s p'(s q_i . k_j) (g_i . v_j - delta_i) / n_i  k_j     + pulled back from  S [g_i, -delta_i] / n_i
    dk_j = sum_i s p'(s q_i . k_j) (g_i . v_j - delta_i) / n_i  q_i     + pulled back from  G [v_j, 1]
    dv_j = sum_i p(s q_i . k_j) / n_i  g_i                              + G^T phi(k_j)

Sums over j <= i of one segment; S the state of the keys before it, G = sum phi(q_i) dN_i over the queries after it.
`queries` makes dq and delta / n, `keys` dk and dv; one buffer serves S and then G.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.taylor_features import (
    allowed,
    entries,
    hide,
    low,
    narrow,
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
def _pull_back(
    x, y, c, first, second, one_first, one_second, states, norms, start, dx, dy,
    W: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, LOW: tl.constexpr,
    VALUES: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add to dx what a block of W features passes on of U = [y, c] . [S, z], and to dy (if VALUES) phi(x) . S."""
    f, column = start + tl.arange(0, W), tl.arange(0, VP)
    pick_first, pick_second = pick(first, W, DP, TYPE), pick(second, W, DP, TYPE)
    left = times(x, pick_first, PRECISION)
    right = times(x, pick_second, PRECISION)
    if LOW:
        left += one_first[None, :]
        right += one_second[None, :]
    state = tl.load(states + f[:, None] * V + column[None, :], mask=(column < V)[None, :], other=0.0).to(TYPE)
    if VALUES:
        dy = plus_times(narrow(left * right, TYPE, PRECISION), state, dy, PRECISION)
    above = times(y, tl.trans(state), PRECISION) + c[:, None] * tl.load(norms + f)[None, :]
    dx = plus_times(narrow(above * right, TYPE, PRECISION), tl.trans(pick_first), dx, PRECISION)
    return plus_times(narrow(above * left, TYPE, PRECISION), tl.trans(pick_second), dx, PRECISION), dy


@triton.jit
def _past(
    x, above, c, k, v, may, i, other, k_l, v_l, may_l, length, scale, dx,
    D: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr,
    PRECISION: tl.constexpr, DIAGONAL: tl.constexpr, MASKED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Add to dx, of queries, what the keys other ... other + N - 1 ask."""
    y = tile(k, other, k_l, length, N, D, DP, TYPE)
    values = tile(v, other, v_l, length, N, V, VP, TYPE)
    if MASKED:
        here = allowed(may, other, may_l, length, N)
        y, values = hide(y, here), hide(values, here)
    slopes = slope(times(x, tl.trans(y), PRECISION), scale, TERMS)
    slopes *= times(above, tl.trans(values), PRECISION) - c[:, None]
    if DIAGONAL:  # a masked key is 0 and adds nothing to dx
        slopes = tl.where(i[:, None] >= (other + tl.arange(0, N))[None, :], slopes, 0.0)
    return plus_times(narrow(slopes, TYPE, PRECISION), y, dx, PRECISION)


@triton.jit
def _future(
    y, values, q, g, inverse, delta, j, other, q_l, g_l, length, scale, dy, dvalues,
    D: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr,
    PRECISION: tl.constexpr, DIAGONAL: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Add to dy, of keys, and dvalues what the queries other ... other + N - 1 ask. Keys lie along the rows."""
    x = tile(q, other, q_l, length, N, D, DP, TYPE)
    above = tile(g, other, g_l, length, N, V, VP, TYPE)
    one = entries(inverse, other, length, 0.0, N)[None, :]
    scores = times(y, tl.trans(x), PRECISION)
    slopes = times(values, tl.trans(above), PRECISION)
    slopes = (slopes * one - entries(delta, other, length, 0.0, N)[None, :]) * slope(scores, scale, TERMS)
    weights = polynomial(scores, scale, TERMS) * one
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
    x = tile(q + b * q_b + h * q_h, row, q_l, length, M, D, DP, TYPE)
    above = tile(g + b * g_b + h * g_h, row, g_l, length, M, V, VP, TYPE)
    result = tile(out + head * length * V, row, V, length, M, V, VP, tl.float32)
    i = row + tl.arange(0, M)
    c = tl.sum(result * above.to(tl.float32), axis=1)
    one = entries(inverse + head * length, row, length, 1.0, M)
    tl.store(delta + head * length + i, c * one, mask=i < length)
    gradient, nothing = tl.zeros((M, DP), tl.float32), tl.zeros((M,), tl.float32)
    segment = row // T
    slot = 0
    if CAUSAL:
        slot = segment - 1
        for other in range(segment * T, row, N):
            gradient = _past(
                x, above, c, k, v, may, i, other, k_l, v_l, may_l, length, scale, gradient,
                D, V, DP, VP, TERMS, TYPE, PRECISION, False, MASKED, N,
            )  # fmt: skip
        for other in range(row, tl.minimum(row + M, length), N):
            gradient = _past(
                x, above, c, k, v, may, i, other, k_l, v_l, may_l, length, scale, gradient,
                D, V, DP, VP, TERMS, TYPE, PRECISION, True, MASKED, N,
            )  # fmt: skip
        gradient *= scale
    if slot >= 0:
        states += (head * slots + slot) * F * V
        norms += (head * slots + slot) * F
        if TERMS == 3:
            for start in range(0, F - WL, W):
                first, second, weight = quadratic(start, scale, W, DF)
                gradient, nothing = _pull_back(
                    x, above, -c, first, second, weight, weight, states, norms, start, gradient, nothing,
                    W, V, DP, VP, False, False, TYPE, PRECISION,
                )  # fmt: skip
        first, second, one_first, one_second, weight = low(scale, WL, DF, TERMS)
        gradient, nothing = _pull_back(
            x, above, -c, first, second, one_first, one_second, states, norms, F - WL, gradient, nothing,
            WL, V, DP, VP, True, False, TYPE, PRECISION,
        )  # fmt: skip
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
    y = tile(k + b * k_b + h * k_h, row, k_l, length, M, D, DP, TYPE)
    values = tile(v + b * v_b + h * v_h, row, v_l, length, M, V, VP, TYPE)
    j = row + tl.arange(0, M)
    dy, dvalues = tl.zeros((M, DP), tl.float32), tl.zeros((M, VP), tl.float32)
    segment = row // T
    slot = 0
    if CAUSAL:
        slot = segment
        end = tl.minimum(segment * T + T, length)
        for other in range(row, tl.minimum(row + M, end), N):
            dy, dvalues = _future(
                y, values, q, g, inverse, delta, j, other, q_l, g_l, length, scale, dy, dvalues,
                D, V, DP, VP, TERMS, TYPE, PRECISION, True, N,
            )  # fmt: skip
        for other in range(row + M, end, N):
            dy, dvalues = _future(
                y, values, q, g, inverse, delta, j, other, q_l, g_l, length, scale, dy, dvalues,
                D, V, DP, VP, TERMS, TYPE, PRECISION, False, N,
            )  # fmt: skip
        dy *= scale
    if slot < slots:
        states += (head * slots + slot) * F * V
        norms += (head * slots + slot) * F
        one = tl.full((M,), 1.0, tl.float32)
        if TERMS == 3:
            for start in range(0, F - WL, W):
                first, second, weight = quadratic(start, scale, W, DF)
                dy, dvalues = _pull_back(
                    y, values, one, first, second, weight, weight, states, norms, start, dy, dvalues,
                    W, V, DP, VP, False, True, TYPE, PRECISION,
                )  # fmt: skip
        first, second, one_first, one_second, weight = low(scale, WL, DF, TERMS)
        dy, dvalues = _pull_back(
            y, values, one, first, second, one_first, one_second, states, norms, F - WL, dy, dvalues,
            WL, V, DP, VP, True, True, TYPE, PRECISION,
        )  # fmt: skip
    if MASKED:
        here = allowed(may + b * may_b + h * may_h, row, may_l, length, M)[:, None]
        dy, dvalues = tl.where(here, dy, 0.0), tl.where(here, dvalues, 0.0)
    put(dk + head * length * D, narrow(dy, TYPE, PRECISION), row, D, length, M, D, DP)
    put(dv + head * length * V, narrow(dvalues, TYPE, PRECISION), row, V, length, M, V, VP)


def backward(
    plan: Plan, q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, result: tuple[Tensor, Tensor], g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; `result` is what `forward` returned, g [B, H, Lq, Dv] the gradient of its first part."""
    out, inverse = result
    queries, keys = q.shape[2], k.shape[2]
    dq, dk, dv = (torch.empty(each.shape, dtype=each.dtype, device=each.device) for each in (q, k, v))
    delta = torch.empty_like(inverse)
    mask, steps = (inverse, (0, 0, 0)) if may is None else (may.view(torch.uint8), may.stride())
    strides = (*lines(q), *lines(k), *lines(v), *steps, *lines(g))
    slots = plan.slots(keys)
    kept = states(plan, k, v, may) if slots else (out, inverse)
    for name, kernel, length, tensors in (
        ("queries", _queries, queries, (out, inverse, delta, dq)),
        ("keys", _keys, keys, (inverse, delta, dk, dv)),
    ):
        if name == "keys" and (slots := plan.slots(queries)):
            del kept  # before the next ones are made
            kept = states(plan, q, g, gradient=(inverse, delta))
        launch(
            kernel, (plan.batch * plan.heads * -(-length // plan.tuning[name].rows), 1),
            (q, k, v, mask, g, *tensors, *kept), (*strides, plan.heads, length, slots, plan.scale),
            plan.tile_constants(name, may is not None),
        )  # fmt: skip
    return dq, dk, dv

"""Pass 1 of Taylor attention on a GPU: the state of every segment, and the sums of those before it (or after it).

    local    S[f, v] = sum over the segment's rows j of  phi_f(x_j) y_j[v],   z[f] = sum over j of  phi_f(x_j) c_j
    scan     S of segment t becomes the sum over the segments up to t, or from t on, or all of them

Forward x is k, y is v and c is 1 (0 where masked). Backward x is q, y = g / n and c = -delta / n: g the
gradient of the result, n the normaliser, delta = g . result. The weights of the features are in S and z. S is kept
in the type of the operands,
z, which decides the normaliser, in float32; both are summed in float32. A program makes W features of one segment,
transposed, so that they leave one product as the left operand of the next.
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
    quadratic,
    tile,
    times,
)
from tiebreak.layers.kernels.taylor_launch import launch
from tiebreak.layers.kernels.taylor_plan import Plan, lines, operand

# ruff: noqa: PLR0913, PLR0917


@triton.jit
def _add(
    left, right, one_left, one_right, x, y, c, one, state, norm,
    LOW: tl.constexpr, GRADIENT: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add rows x [C, D], y [C, V] (times `one` [C] in a gradient) and c [C] to W features of the state and its norm."""
    turned = tl.trans(x)
    first = times(left, turned, PRECISION)
    second = times(right, turned, PRECISION)
    if LOW:
        first += one_left[:, None]
        second += one_right[:, None]
    features = first * second
    norm += tl.sum(features * c[None, :], axis=1)
    if GRADIENT:
        features *= one[None, :]
    return plus_times(narrow(features, TYPE, PRECISION), y, state, PRECISION), norm


@triton.jit
def _local(
    x, y, inverse, delta, may, states, norms,
    x_b, x_h, x_l, y_b, y_h, y_l, may_b, may_h, may_l,
    heads, length, slots, offset, scale,
    D: tl.constexpr, V: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr,
    WL: tl.constexpr, F: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    QUADRATIC: tl.constexpr, LOW: tl.constexpr, GRADIENT: tl.constexpr, MASKED: tl.constexpr,
    T: tl.constexpr, C: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    slot, head = tl.program_id(0) % slots, (tl.program_id(0) // slots).to(tl.int64)
    b, h = head // heads, head % heads
    x += b * x_b + h * x_h
    y += b * y_b + h * y_h
    start = tl.program_id(1) * W
    segment = slot + offset
    if QUADRATIC:
        index, other, weight = quadratic(start, scale, W, DF)
        left, right = tl.trans(pick(index, W, DP, TYPE)), tl.trans(pick(other, W, DP, TYPE))
        state, norm = tl.zeros((W, VP), tl.float32), tl.zeros((W,), tl.float32)
    if LOW:
        low_index, low_other, one_left, one_right, low_weight = low(scale, WL, DF, TERMS)
        low_left, low_right = tl.trans(pick(low_index, WL, DP, TYPE)), tl.trans(pick(low_other, WL, DP, TYPE))
        low_state, low_norm = tl.zeros((WL, VP), tl.float32), tl.zeros((WL,), tl.float32)
    for row in range(segment * T, tl.minimum(segment * T + T, length), C):
        rows = tile(x, row, x_l, length, C, D, DP, TYPE)
        values = tile(y, row, y_l, length, C, V, VP, TYPE)
        if GRADIENT:
            one = entries(inverse + head * length, row, length, 0.0, C)
            c = -entries(delta + head * length, row, length, 0.0, C)
        else:
            here = row + tl.arange(0, C) < length
            if MASKED:
                here = allowed(may + b * may_b + h * may_h, row, may_l, length, C)
                rows, values = hide(rows, here), hide(values, here)
            c = here.to(tl.float32)
            one = c
        if QUADRATIC:
            state, norm = _add(left, right, c, c, rows, values, c, one, state, norm, False, GRADIENT, TYPE, PRECISION)
        if LOW:
            low_state, low_norm = _add(
                low_left, low_right, one_left, one_right, rows, values, c, one, low_state, low_norm,
                True, GRADIENT, TYPE, PRECISION,
            )  # fmt: skip
    states += (head * slots + slot) * F * V
    norms += (head * slots + slot) * F
    column = tl.arange(0, VP)
    if QUADRATIC:
        f = start + tl.arange(0, W)
        state, norm = state * weight[:, None], norm * weight
        tl.store(states + f[:, None] * V + column[None, :], narrow(state, TYPE, PRECISION), mask=(column < V)[None, :])
        tl.store(norms + f, norm)
    if LOW:
        f = F - WL + tl.arange(0, WL)
        low_state, low_norm = low_state * low_weight[:, None], low_norm * low_weight
        tl.store(
            states + f[:, None] * V + column[None, :], narrow(low_state, TYPE, PRECISION), mask=(column < V)[None, :]
        )
        tl.store(norms + f, low_norm)


@triton.jit
def _scan(
    states, norms, slots, size, norm_size,
    REVERSE: tl.constexpr, TOTAL: tl.constexpr, G: tl.constexpr, E: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    blocks, norm_blocks = tl.cdiv(size, E), tl.cdiv(norm_size, E)
    block = tl.program_id(0) % (blocks + norm_blocks)
    head = (tl.program_id(0) // (blocks + norm_blocks)).to(tl.int64)
    if block < blocks:
        _scan_block(states + head * slots * size, block, slots, size, REVERSE, TOTAL, G, E, TYPE, PRECISION)
    else:
        norms += head * slots * norm_size
        _scan_block(norms, block - blocks, slots, norm_size, REVERSE, TOTAL, G, E, tl.float32, "ieee")


@triton.jit
def _scan_block(
    values, block, slots, size,
    REVERSE: tl.constexpr, TOTAL: tl.constexpr, G: tl.constexpr, E: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    e = block * E + tl.arange(0, E)
    carried = tl.zeros((E,), tl.float32)
    for group in range(0, slots, G):
        slot = group + tl.arange(0, G)
        if REVERSE:
            slot = slots - 1 - slot
        inside = ((slot >= 0) & (slot < slots))[:, None] & (e < size)[None, :]
        where = values + slot.to(tl.int64)[:, None] * size + e[None, :]
        own = tl.load(where, mask=inside, other=0.0).to(tl.float32)
        if not TOTAL:
            total = tl.cumsum(own, axis=0) + carried[None, :]
            tl.store(where, narrow(total, TYPE, PRECISION), mask=inside)
        carried += tl.sum(own, axis=0)
    if TOTAL:
        tl.store(values + e, narrow(carried, TYPE, PRECISION), mask=e < size)


def states(
    plan: Plan, x: Tensor, y: Tensor, may: Tensor | None = None, gradient: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """S [heads, slots, F, V] and z [heads, slots, F] of x [B, H, L, D] and y [B, H, L, V].

    Causal, slot t holds the segments up to t (forward), or those after t (backward, where `gradient` is 1 / n
    and delta / n); otherwise slot 0 holds all of them.
    """
    backward, length = gradient is not None, x.shape[2]
    slots, count = plan.slots(length), plan.batch * plan.heads
    kept = torch.empty(count, slots, plan.features, plan.v, dtype=operand(x.dtype), device=x.device)
    norms = torch.empty(count, slots, plan.features, dtype=torch.float32, device=x.device)
    inverse, delta = gradient if gradient is not None else (norms, norms)
    mask, steps = (norms, (0, 0, 0)) if may is None else (may.view(torch.uint8), may.stride())
    tensors, masked = (x, y, inverse, delta, mask, kept, norms), may is not None
    offset = 1 if backward and plan.causal else 0
    numbers = (*lines(x), *lines(y), *steps, plan.heads, length, slots, offset, plan.scale)
    blocks = plan.quadratic // plan.block
    if blocks == 1:  # the low features go along
        launch(_local, (count * slots, 1), tensors, numbers, plan.state_constants("both", masked, backward))
    else:
        launch(_local, (count * slots, 1), tensors, numbers, plan.state_constants("low", masked, backward))
    if blocks > 1:
        launch(_local, (count * slots, blocks), tensors, numbers, plan.state_constants("quadratic", masked, backward))
    if slots > 1:
        scan, size, rows = plan.scan_constants(backward, slots), plan.features * plan.v, plan.tuning["scan"].rows
        programs = -(-size // rows) - (-plan.features // rows)
        launch(_scan, (count * programs, 1), (kept, norms), (slots, size, plan.features), scan)
    return kept, norms

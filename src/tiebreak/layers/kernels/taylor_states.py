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
    any_features,
    copied_rows,
    entries,
    hide,
    narrow,
    pick,
    plus_times,
    tile,
)
from tiebreak.layers.kernels.taylor_launch import described, launch
from tiebreak.layers.kernels.taylor_plan import Plan, lines, operand

# ruff: noqa: PLR0913, PLR0917


@triton.jit
def _rows(
    x, y, may, start, x_l, y_l, may_l, length,
    D: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, MASKED: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """C rows of x and y, and which of them count."""
    rows, values = tile(x, start, x_l, length, C, D, DP), tile(y, start, y_l, length, C, V, VP)
    here = start + tl.arange(0, C) < length
    if MASKED:
        here = allowed(may, start, may_l, length, C)
        rows, values = hide(rows, here), hide(values, here)
    return rows, values, here


@triton.jit
def _local(
    x, y, inverse, delta, may, states, norms,
    x_b, x_h, x_l, y_b, y_h, y_l, may_b, may_h, may_l,
    heads, length, slots, offset, scale,
    D: tl.constexpr, V: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr,
    WL: tl.constexpr, F: tl.constexpr, TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
    GRADIENT: tl.constexpr, MASKED: tl.constexpr, T: tl.constexpr, C: tl.constexpr, W: tl.constexpr,
    COPIED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    blocks: tl.constexpr = (F + W - 1) // W
    start, program = tl.program_id(0) % blocks * W, tl.program_id(0) // blocks  # neighbours read the same rows
    slot, head = program % slots, (program // slots).to(tl.int64)
    b, h = head // heads, head % heads
    if not COPIED:  # descriptors are of all heads
        x += b * x_b + h * x_h
        y += b * y_b + h * y_h
    inverse += head * length
    delta += head * length
    may += b * may_b + h * may_h
    segment = slot + offset
    first, second, one_first, one_second, weight = any_features(start, scale, W, DF, F - WL, TERMS)
    left, right = tl.trans(pick(first, W, DP, TYPE)), tl.trans(pick(second, W, DP, TYPE))
    state, norm = tl.zeros((W, VP), tl.float32), tl.zeros((W, C), tl.float32)
    ones_left, ones_right = norm + one_first[:, None], norm + one_second[:, None]
    end = tl.minimum(segment * T + T, length)
    for row in tl.range(segment * T, end, C, num_stages=STAGES):
        if COPIED:
            rows, values = copied_rows(x, b, h, row, C, DP), copied_rows(y, b, h, row, C, VP)
            here = row + tl.arange(0, C) < length
        else:
            rows, values, here = _rows(x, y, may, row, x_l, y_l, may_l, length, D, V, DP, VP, MASKED, C)
        c = here.to(tl.float32)
        if GRADIENT:
            one, c = entries(inverse, row, length, 0.0, C), -entries(delta, row, length, 0.0, C)
        turned = tl.trans(rows.to(TYPE))
        features = plus_times(left, turned, ones_left, PRECISION) * plus_times(right, turned, ones_right, PRECISION)
        norm += features * c[None, :]
        if GRADIENT:
            features *= one[None, :]
        state = plus_times(narrow(features, TYPE, PRECISION), values.to(TYPE), state, PRECISION)
    states += (head * slots + slot) * F * V
    norms += (head * slots + slot) * F
    f, column = start + tl.arange(0, W), tl.arange(0, VP)
    state, total = narrow(state * weight[:, None], TYPE, PRECISION), tl.sum(norm, axis=1) * weight
    tl.store(states + f[:, None] * V + column[None, :], state, mask=(f < F)[:, None] & (column < V)[None, :])
    tl.store(norms + f, total, mask=f < F)


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
    """S [B, H, slots, F, V] and z [B, H, slots, F] of x [B, H, L, D] and y [B, H, L, V].

    Causal, slot t holds the segments up to t (forward), or those after t (backward, where `gradient` is 1 / n
    and delta / n); otherwise slot 0 holds all of them. A sequence of one segment has no slots if it is causal.
    """
    backward, length = gradient is not None, x.shape[2]
    slots, count = plan.slots(length), plan.batch * plan.heads
    shape = (plan.batch, plan.heads, slots, plan.features)
    kept = torch.empty(*shape, plan.v, dtype=operand(x.dtype), device=x.device)
    norms = torch.empty(shape, dtype=torch.float32, device=x.device)
    if slots == 0:
        return kept, norms
    inverse, delta = gradient if gradient is not None else (norms, norms)
    mask, steps = (norms, (0, 0, 0)) if may is None else (may.view(torch.uint8), may.stride())
    rows, copied = described(plan.copied("states"), may, (x, plan.dp), (y, plan.vp))
    tensors, masked = (*rows, inverse, delta, mask, kept, norms), may is not None
    offset = 1 if backward and plan.causal else 0
    numbers = (*lines(x), *lines(y), *steps, plan.heads, length, slots, offset, plan.scale)
    local = plan.state_constants(masked, backward, copied)
    launch(_local, (count * slots * plan.blocks, 1), tensors, numbers, local)
    if slots > 1:
        scan, size, most = plan.scan_constants(backward, slots), plan.features * plan.v, plan.tuning["scan"].rows
        programs = -(-size // most) - (-plan.features // most)
        launch(_scan, (count * programs, 1), (kept, norms), (slots, size, plan.features), scan)
    return kept, norms

"""A recurrent layer in one kernel a sequence: the ops of `recurrent_scan` on a GPU.

Rows of a batch do not depend on each other. A program owns some rows of one run and walks through all time steps by
itself, so that a sequence is one launch forward and one backward, and not several for each step. Narrow layers have
kernels of their own, see `recurrent_tile`. Here the recurrent weights are read again at every step, from L2. The states
[T + 1, B, H] are stored anyway, for the gradient: a program reads those of the step before, some units at a time, so
that any width fits. Its threads meet after each step, since what one of them stored the others read.

    forward    some units j:  sum over k of  h[., k] W[j, k]  for every gate, then the gates, h and c
    backward   some units j:  the gradients of the gates;  then some k:  sum over q of  dgate[., q] W[q, k]

The weights' own gradient is one batched product over all steps and rows, outside. Products are float32 as three TF32
products, TF32 or bfloat16, sums float32. Blocks do not depend on the number of runs: a run's numbers do not either.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels import recurrent_tile
from tiebreak.layers.kernels.recurrent_cells import (
    GRU,
    LSTM,
    gru,
    gru_gradient,
    lstm,
    lstm_gradient,
    plain,
    plain_gradient,
    times,
)

# Triton compiles a kernel for its parameters: it takes no structures, and every size must be a constant of its own.
# It drops a branch by a constant only where it is written as plain comparisons.
# ruff: noqa: PLR0913, PLR0915, PLR0917, PLR1714, SIM109


@triton.jit
def _product(
    a, b, rows, columns, a_row: tl.constexpr, b_k: tl.constexpr, b_n: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr,
    BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """a b for some rows of a [M, K] and some columns of b [K, N], whose strides are given."""
    total = tl.zeros((BB, BH), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * a_row + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        inside = (k < K)[:, None] & (columns < N)[None, :]
        right = tl.load(b + k[:, None] * b_k + columns[None, :] * b_n, mask=inside, other=0.0)
        total = times(left, right, total, HOW)
    return total


@triton.jit
def _forward(
    drive, weight, bias, lengths, states, memories, gates,
    T: tl.constexpr, B: tl.constexpr, H: tl.constexpr, KIND: tl.constexpr, REVERSE: tl.constexpr, HOW: tl.constexpr,
    BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(B, BB)
    run = (tl.program_id(0) // blocks).to(tl.int64)
    rows = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    G: tl.constexpr = 4 if KIND == LSTM else 3 if KIND == GRU else 1  # gates of the inputs' projection
    Q: tl.constexpr = 4 if KIND == LSTM or KIND == GRU else 1  # numbers that the gradient needs of a unit
    weight += run * (G * H * H)
    length = tl.load(lengths + run * B + rows, mask=rows < B, other=0)
    for step in range(T):
        time = T - 1 - step if REVERSE else step
        before = (run * (T + 1) + (time + 1 if REVERSE else time)) * (B * H)
        after = (run * (T + 1) + (time if REVERSE else time + 1)) * (B * H)
        state = states + before
        for tile in range(0, H, BH):
            j = tile + tl.arange(0, BH)
            inside = (rows < B)[:, None] & (j < H)[None, :]
            real = inside & (time < length)[:, None]
            here = rows[:, None] * H + j[None, :]
            given = drive + (run * T + time) * (B * G * H) + rows[:, None] * (G * H) + j[None, :]
            kept = gates + (run * T + time) * (B * Q * H) + rows[:, None] * (Q * H) + j[None, :]
            old = tl.load(state + here, mask=inside, other=0.0)
            first = _product(state, weight, rows, j, H, 1, H, B, H, H, HOW, BB, BH, BK)
            if KIND == LSTM or KIND == GRU:
                second = _product(state, weight + H * H, rows, j, H, 1, H, B, H, H, HOW, BB, BH, BK)
                third = _product(state, weight + 2 * H * H, rows, j, H, 1, H, B, H, H, HOW, BB, BH, BK)
            own = bias + run * (G * H) + j
            first += tl.load(own, mask=j < H, other=0.0)[None, :] + tl.load(given, mask=inside, other=0.0)
            if KIND == LSTM or KIND == GRU:
                second += tl.load(own + H, mask=j < H, other=0.0)[None, :]
                second += tl.load(given + H, mask=inside, other=0.0)
                third += tl.load(own + 2 * H, mask=j < H, other=0.0)[None, :]
                last = tl.load(given + 2 * H, mask=inside, other=0.0)
            if KIND == LSTM:
                fourth = _product(state, weight + 3 * H * H, rows, j, H, 1, H, B, H, H, HOW, BB, BH, BK)
                fourth += tl.load(own + 3 * H, mask=j < H, other=0.0)[None, :]
                fourth += tl.load(given + 3 * H, mask=inside, other=0.0)
                memory = tl.load(memories + before + here, mask=inside, other=0.0)
                enter, keep, fresh, show, changed, new = lstm(first, second, third + last, fourth, memory)
                tl.store(kept, enter, mask=inside)
                tl.store(kept + H, keep, mask=inside)
                tl.store(kept + 2 * H, fresh, mask=inside)
                tl.store(kept + 3 * H, show, mask=inside)
                tl.store(memories + after + here, tl.where(real, changed, memory), mask=inside)
            elif KIND == GRU:
                reset, keep, fresh, new = gru(first, second, last, third, old)
                tl.store(kept, reset, mask=inside)
                tl.store(kept + H, keep, mask=inside)
                tl.store(kept + 2 * H, fresh, mask=inside)
                tl.store(kept + 3 * H, third, mask=inside)
            else:
                new = plain(first, KIND)
                tl.store(kept, new, mask=inside)
            tl.store(states + after + here, tl.where(real, new, old), mask=inside)
        tl.debug_barrier()


@triton.jit
def _backward(
    weight, lengths, states, memories, gates, dstates, dstate, dmemory, ddrive, dhidden,
    T: tl.constexpr, B: tl.constexpr, H: tl.constexpr, KIND: tl.constexpr, REVERSE: tl.constexpr, HOW: tl.constexpr,
    BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(B, BB)
    run = (tl.program_id(0) // blocks).to(tl.int64)
    rows = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    G: tl.constexpr = 4 if KIND == LSTM else 3 if KIND == GRU else 1
    Q: tl.constexpr = 4 if KIND == LSTM or KIND == GRU else 1
    weight += run * (G * H * H)
    dstate += run * (B * H)
    dmemory += run * (B * H)
    length = tl.load(lengths + run * B + rows, mask=rows < B, other=0)
    for step in range(T):
        time = step if REVERSE else T - 1 - step
        before = (run * (T + 1) + (time + 1 if REVERSE else time)) * (B * H)
        after = (run * (T + 1) + (time if REVERSE else time + 1)) * (B * H)
        out = (run * T + time) * (B * G * H)
        for tile in range(0, H, BH):  # the gradients of the gates; `dstate` becomes what goes past them
            j = tile + tl.arange(0, BH)
            inside = (rows < B)[:, None] & (j < H)[None, :]
            real = inside & (time < length)[:, None]
            here = rows[:, None] * H + j[None, :]
            into = out + rows[:, None] * (G * H) + j[None, :]
            kept = gates + (run * T + time) * (B * Q * H) + rows[:, None] * (Q * H) + j[None, :]
            above = tl.load(dstate + here, mask=inside, other=0.0)
            above += tl.load(dstates + after + here, mask=inside, other=0.0)
            past = tl.where(real, 0.0, above)
            gate0 = tl.load(kept, mask=inside, other=0.0)
            if KIND == LSTM or KIND == GRU:
                gate1 = tl.load(kept + H, mask=inside, other=0.0)
                gate2 = tl.load(kept + 2 * H, mask=inside, other=0.0)
                gate3 = tl.load(kept + 3 * H, mask=inside, other=0.0)
            if KIND == LSTM:
                changed = tl.load(memories + after + here, mask=inside, other=0.0)
                memory = tl.load(memories + before + here, mask=inside, other=0.0)
                later = tl.load(dmemory + here, mask=inside, other=0.0)
                d0, d1, d2, d3, later = lstm_gradient(above, changed, memory, gate0, gate1, gate2, gate3, later, real)
                tl.store(dhidden + into + H, d1, mask=inside)
                tl.store(dhidden + into + 2 * H, d2, mask=inside)
                tl.store(dhidden + into + 3 * H, d3, mask=inside)
                tl.store(dmemory + here, later, mask=inside)
            elif KIND == GRU:
                old = tl.load(states + before + here, mask=inside, other=0.0)
                d0, d1, inner, d2 = gru_gradient(above, old, gate0, gate1, gate2, gate3, real)
                tl.store(ddrive + into, d0, mask=inside)
                tl.store(ddrive + into + H, d1, mask=inside)
                tl.store(ddrive + into + 2 * H, inner, mask=inside)
                tl.store(dhidden + into + H, d1, mask=inside)
                tl.store(dhidden + into + 2 * H, d2, mask=inside)
                past = tl.where(real, above * gate1, above)
            else:
                d0 = plain_gradient(above, gate0, real, KIND)
            tl.store(dhidden + into, d0, mask=inside)
            tl.store(dstate + here, past, mask=inside)
        tl.debug_barrier()
        for tile in range(0, H, BH):
            j = tile + tl.arange(0, BH)
            inside = (rows < B)[:, None] & (j < H)[None, :]
            where = dstate + rows[:, None] * H + j[None, :]
            through = _product(dhidden + out, weight, rows, j, G * H, H, 1, B, H, G * H, HOW, BB, BH, BK)
            tl.store(where, through + tl.load(where, mask=inside, other=0.0), mask=inside)
        tl.debug_barrier()


def _how(precision: str) -> str:
    return (
        f"{precision} interpreted" if precision == "bf16" and os.environ.get("TRITON_INTERPRET") == "1" else precision
    )


def blocks_of(rows: int, hidden: int) -> tuple[tuple[int, int, int], int]:
    """Rows, units and the step of a sum in one tile, and warps (H200, 20 steps of 64 rows and 128 units, 30 runs)."""
    side = max(16, int(triton.next_power_of_2(hidden)))
    return (16, min(128, side), min(64, side)), 4


def forward(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor]:
    """`recurrent_scan.recur` on the device of the tensors."""
    drive, weight, bias, state, memory, lengths = (each.contiguous() for each in tensors)
    runs, time, rows, _ = drive.shape
    hidden, remembers = state.shape[-1], kind == LSTM.value
    states = state.new_empty(runs, time + 1, rows, hidden)
    memories = torch.empty_like(states) if remembers else states.new_empty(runs, 0)
    gates = state.new_empty(runs, time, rows, (4 if kind in (LSTM.value, GRU.value) else 1) * hidden)
    made = states, memories, gates
    given = drive, weight, bias, state, memory, lengths
    if recurrent_tile.forward(given, made, kind, reverse, _how(precision)):
        return made
    states[:, time if reverse else 0] = state
    if remembers:
        memories[:, time if reverse else 0] = memory
    blocks, warps = blocks_of(rows, hidden)
    _forward[(runs * triton.cdiv(rows, blocks[0]),)](
        drive, weight, bias, lengths, *made,
        time, rows, hidden, kind, reverse, _how(precision), *blocks, num_warps=warps,
    )  # fmt: skip
    return made


def backward(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`recurrent_scan.recur_gradient` on the device of the tensors."""
    weight, lengths, states, memories, gates, dstates, dlast = (each.contiguous() for each in tensors)
    runs, places, rows, hidden = states.shape
    dhidden = states.new_empty(runs, places - 1, rows, weight.shape[1])
    ddrive = torch.empty_like(dhidden) if kind == GRU.value else states.new_empty(runs, 0)
    dstate, dmemory = states.new_zeros(runs, rows, hidden), dlast.clone()
    given = weight, lengths, states, memories, gates, dstates, dlast
    if recurrent_tile.backward(given, (dstate, dmemory, ddrive, dhidden), kind, reverse, _how(precision)):
        return ddrive, dhidden, dstate, dmemory
    blocks, warps = blocks_of(rows, hidden)
    _backward[(runs * triton.cdiv(rows, blocks[0]),)](
        weight, lengths, states, memories, gates, dstates, dstate, dmemory,
        ddrive, dhidden, places - 1, rows, hidden, kind, reverse, _how(precision), *blocks, num_warps=warps,
    )  # fmt: skip
    dstate += dstates[:, places - 1 if reverse else 0]
    return ddrive, dhidden, dstate, dmemory

"""A recurrent layer in one kernel a sequence: the ops of `recurrent_scan` on a GPU.

Rows of a batch do not depend on each other. A program owns some rows of one run and walks through all time steps by
itself, so that a sequence is one launch forward and one backward, and not several for each step. The recurrent weights
are read again at every step, from L2. The states [T + 1, B, H] are stored anyway, for the gradient: a program reads
those of the step before, some units at a time, so that any width fits. Its threads meet after each step, since what
one of them stored the others read.

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

# Triton compiles a kernel for its parameters: it takes no structures, and every size must be a constant of its own.
# It drops a branch by a constant only where it is written as plain comparisons.
# ruff: noqa: PLR0913, PLR0917, PLR1714, SIM109
TANH, RELU, SIGMOID, LSTM, GRU = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3), tl.constexpr(4)


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


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
        if HOW == "bf16":
            total = tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), total)
        elif HOW == "bf16 interpreted":  # the interpreter multiplies the bits of such numbers
            left, right = left.to(tl.bfloat16).to(tl.float32), right.to(tl.bfloat16).to(tl.float32)
            total = tl.dot(left, right, total, input_precision="ieee")
        else:
            total = tl.dot(left, right, total, input_precision=HOW)
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
            if KIND == LSTM:
                fourth = _product(state, weight + 3 * H * H, rows, j, H, 1, H, B, H, H, HOW, BB, BH, BK)
                memory = tl.load(memories + before + here, mask=inside, other=0.0)
                changed, new = _lstm(first, second, third, fourth, memory, given, kept, inside, H)
                tl.store(memories + after + here, tl.where(real, changed, memory), mask=inside)
            elif KIND == GRU:
                own = bias + run * (G * H) + j
                first += tl.load(own, mask=j < H, other=0.0)[None, :]
                second += tl.load(own + H, mask=j < H, other=0.0)[None, :]
                third += tl.load(own + 2 * H, mask=j < H, other=0.0)[None, :]
                new = _gru(first, second, third, old, given, kept, inside, H)
            else:
                total = first + tl.load(given, mask=inside, other=0.0)
                new = _tanh(total) if KIND == TANH else tl.maximum(total, 0.0) if KIND == RELU else tl.sigmoid(total)
                tl.store(kept, new, mask=inside)
            tl.store(states + after + here, tl.where(real, new, old), mask=inside)
        tl.debug_barrier()


@triton.jit
def _lstm(first, second, third, fourth, memory, given, kept, inside, H: tl.constexpr):
    """The memory and the state after a step; the gates are stored."""
    enter = tl.sigmoid(first + tl.load(given, mask=inside, other=0.0))
    keep = tl.sigmoid(second + tl.load(given + H, mask=inside, other=0.0))
    fresh = _tanh(third + tl.load(given + 2 * H, mask=inside, other=0.0))
    show = tl.sigmoid(fourth + tl.load(given + 3 * H, mask=inside, other=0.0))
    tl.store(kept, enter, mask=inside)
    tl.store(kept + H, keep, mask=inside)
    tl.store(kept + 2 * H, fresh, mask=inside)
    tl.store(kept + 3 * H, show, mask=inside)
    changed = keep * memory + enter * fresh
    return changed, show * _tanh(changed)


@triton.jit
def _gru(first, second, third, old, given, kept, inside, H: tl.constexpr):
    """The state after a step; the gates are stored, and what the reset gate acts on."""
    reset = tl.sigmoid(first + tl.load(given, mask=inside, other=0.0))
    keep = tl.sigmoid(second + tl.load(given + H, mask=inside, other=0.0))
    fresh = _tanh(tl.load(given + 2 * H, mask=inside, other=0.0) + reset * third)
    tl.store(kept, reset, mask=inside)
    tl.store(kept + H, keep, mask=inside)
    tl.store(kept + 2 * H, fresh, mask=inside)
    tl.store(kept + 3 * H, third, mask=inside)
    return fresh + keep * (old - fresh)


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
            if KIND == LSTM:
                bent = _tanh(tl.load(memories + after + here, mask=inside, other=0.0))
                memory = tl.load(memories + before + here, mask=inside, other=0.0)
                _lstm_gradient(above, bent, memory, dmemory + here, kept, dhidden + into, inside, real, H)
            elif KIND == GRU:
                old = tl.load(states + before + here, mask=inside, other=0.0)
                keep = tl.load(kept + H, mask=inside, other=0.0)
                _gru_gradient(above, keep, old, kept, ddrive + into, dhidden + into, inside, real, H)
                past = tl.where(real, above * keep, above)
            else:
                new = tl.load(kept, mask=inside, other=0.0)
                slope = 1 - new * new if KIND == TANH else new * (1 - new)
                if KIND == RELU:
                    slope = tl.where(new > 0, 1.0, 0.0)
                tl.store(dhidden + into, tl.where(real, above * slope, 0.0), mask=inside)
            tl.store(dstate + here, past, mask=inside)
        tl.debug_barrier()
        for tile in range(0, H, BH):
            j = tile + tl.arange(0, BH)
            inside = (rows < B)[:, None] & (j < H)[None, :]
            where = dstate + rows[:, None] * H + j[None, :]
            through = _product(dhidden + out, weight, rows, j, G * H, H, 1, B, H, G * H, HOW, BB, BH, BK)
            tl.store(where, through + tl.load(where, mask=inside, other=0.0), mask=inside)
        tl.debug_barrier()


@triton.jit
def _lstm_gradient(above, bent, memory, carried, kept, out, inside, real, H: tl.constexpr):
    """Store the gradients of the gates before their nonlinearity, and of the memory before the step."""
    enter = tl.load(kept, mask=inside, other=0.0)
    keep = tl.load(kept + H, mask=inside, other=0.0)
    fresh = tl.load(kept + 2 * H, mask=inside, other=0.0)
    show = tl.load(kept + 3 * H, mask=inside, other=0.0)
    later = tl.load(carried, mask=inside, other=0.0)
    inner = later + above * show * (1 - bent * bent)
    tl.store(out, tl.where(real, inner * fresh * enter * (1 - enter), 0.0), mask=inside)
    tl.store(out + H, tl.where(real, inner * memory * keep * (1 - keep), 0.0), mask=inside)
    tl.store(out + 2 * H, tl.where(real, inner * enter * (1 - fresh * fresh), 0.0), mask=inside)
    tl.store(out + 3 * H, tl.where(real, above * bent * show * (1 - show), 0.0), mask=inside)
    tl.store(carried, tl.where(real, inner * keep, later), mask=inside)


@triton.jit
def _gru_gradient(above, keep, old, kept, given, out, inside, real, H: tl.constexpr):
    """Store the gradients of the gates before their nonlinearity: of the inputs' part and of the state's."""
    reset = tl.load(kept, mask=inside, other=0.0)
    fresh = tl.load(kept + 2 * H, mask=inside, other=0.0)
    own = tl.load(kept + 3 * H, mask=inside, other=0.0)
    inner = tl.where(real, above * (1 - keep) * (1 - fresh * fresh), 0.0)
    first = inner * own * reset * (1 - reset)
    second = tl.where(real, above * (old - fresh) * keep * (1 - keep), 0.0)
    tl.store(given, first, mask=inside)
    tl.store(given + H, second, mask=inside)
    tl.store(given + 2 * H, inner, mask=inside)
    tl.store(out, first, mask=inside)
    tl.store(out + H, second, mask=inside)
    tl.store(out + 2 * H, inner * reset, mask=inside)


def _how(precision: str) -> str:
    return (
        f"{precision} interpreted" if precision == "bf16" and os.environ.get("TRITON_INTERPRET") == "1" else precision
    )


def blocks_of(rows: int, hidden: int) -> tuple[tuple[int, int, int], int]:
    """Rows, units and the step of a sum in one tile, and warps. Not measured yet."""
    side = min(32, max(16, int(triton.next_power_of_2(hidden))))
    return (16 if rows <= 1024 else 32, side, side), 4


def forward(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor]:
    """`recurrent_scan.recur` on the device of the tensors."""
    drive, weight, bias, state, memory, lengths = (each.contiguous() for each in tensors)
    runs, time, rows, _ = drive.shape
    hidden, lstm = state.shape[-1], kind == LSTM.value
    states = state.new_empty(runs, time + 1, rows, hidden)
    memories = torch.empty_like(states) if lstm else states
    states[:, time if reverse else 0] = state
    if lstm:
        memories[:, time if reverse else 0] = memory
    gates = state.new_empty(runs, time, rows, (4 if kind in (LSTM.value, GRU.value) else 1) * hidden)
    blocks, warps = blocks_of(rows, hidden)
    _forward[(runs * triton.cdiv(rows, blocks[0]),)](
        drive, weight, bias, lengths, states, memories, gates,
        time, rows, hidden, kind, reverse, _how(precision), *blocks, num_warps=warps,
    )  # fmt: skip
    return states, memories if lstm else states.new_empty(runs, 0), gates


def backward(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`recurrent_scan.recur_gradient` on the device of the tensors."""
    weight, lengths, states, memories, gates, dstates, dlast = (each.contiguous() for each in tensors)
    runs, places, rows, hidden = states.shape
    lstm = kind == LSTM.value
    dhidden = states.new_empty(runs, places - 1, rows, weight.shape[1])
    ddrive = torch.empty_like(dhidden) if kind == GRU.value else dhidden
    dstate = states.new_zeros(runs, rows, hidden)
    dmemory = dlast.clone()
    blocks, warps = blocks_of(rows, hidden)
    _backward[(runs * triton.cdiv(rows, blocks[0]),)](
        weight, lengths, states, memories if lstm else states, gates, dstates, dstate, dmemory if lstm else dstate,
        ddrive, dhidden, places - 1, rows, hidden, kind, reverse, _how(precision), *blocks, num_warps=warps,
    )  # fmt: skip
    dstate += dstates[:, places - 1 if reverse else 0]
    # An op may not return one tensor twice.
    return ddrive if kind == GRU.value else dhidden.clone(), dhidden, dstate, dmemory

"""The recurrent kernels for narrow layers: a program holds the whole state of its rows in registers.

As in `recurrent`, a program owns some rows of one run and walks through all time steps. Here one tile has all units, so
that the state (backward: its gradient, and the memory's) stays in registers from step to step, and threads need not
meet. HELD of the gates' recurrent weights stay in registers too; the others are read again at every step, from L2.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

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

# Triton takes no structures, drops a branch only where it is written as plain comparisons, and names each tile.
# ruff: noqa: PLR0912, PLR0913, PLR0915, PLR0917, PLR1714, SIM109
WIDEST = 128  # units that fit


@triton.jit
def _matrix(weight, across: tl.constexpr, H: tl.constexpr, HOW: tl.constexpr, BH: tl.constexpr):
    """The weights [H, H] of a gate, or their transpose, padded with zeros."""
    down, right = tl.arange(0, BH)[:, None], tl.arange(0, BH)[None, :]
    inside = (down < H) & (right < H)
    found = tl.load(weight + (right * H + down if across else down * H + right), mask=inside, other=0.0)
    return found.to(tl.bfloat16) if HOW == "bf16" else found


@triton.jit
def _inputs(given, inside, H: tl.constexpr, KIND: tl.constexpr):
    """What the inputs give to each gate at a step; four in any case."""
    first = tl.load(given, mask=inside, other=0.0)
    second, third, fourth = first, first, first
    if KIND == LSTM or KIND == GRU:
        second = tl.load(given + H, mask=inside, other=0.0)
        third = tl.load(given + 2 * H, mask=inside, other=0.0)
    if KIND == LSTM:
        fourth = tl.load(given + 3 * H, mask=inside, other=0.0)
    return first, second, third, fourth


@triton.jit
def _forward(
    drive, weight, bias, lengths, first_state, first_memory, states, memories, gates,
    T: tl.constexpr, B: tl.constexpr, H: tl.constexpr, KIND: tl.constexpr, REVERSE: tl.constexpr, HOW: tl.constexpr,
    BB: tl.constexpr, BH: tl.constexpr, HELD: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(B, BB)
    run = (tl.program_id(0) // blocks).to(tl.int64)
    rows = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    G: tl.constexpr = 4 if KIND == LSTM else 3 if KIND == GRU else 1  # gates of the inputs' projection
    Q: tl.constexpr = 4 if KIND == LSTM or KIND == GRU else 1  # numbers that the gradient needs of a unit
    gated: tl.constexpr = KIND == LSTM or KIND == GRU
    weight += run * (G * H * H)
    bias += run * (G * H)
    j = tl.arange(0, BH)
    inside = (rows < B)[:, None] & (j < H)[None, :]
    here = rows[:, None] * H + j[None, :]
    length = tl.load(lengths + run * B + rows, mask=rows < B, other=0)
    places = states + run * ((T + 1) * B * H) + here
    state = tl.load(first_state + run * (B * H) + here, mask=inside, other=0.0)
    tl.store(places + (T if REVERSE else 0) * (B * H), state, mask=inside)
    if KIND == LSTM:
        kept_memories = memories + run * ((T + 1) * B * H) + here
        memory = tl.load(first_memory + run * (B * H) + here, mask=inside, other=0.0)
        tl.store(kept_memories + (T if REVERSE else 0) * (B * H), memory, mask=inside)
    zero = tl.zeros((BB, BH), tl.float32)
    bias0 = tl.load(bias + j, mask=j < H, other=0.0)[None, :]
    if HELD > 0:
        w0 = _matrix(weight, True, H, HOW, BH)
    if gated:
        bias1 = tl.load(bias + H + j, mask=j < H, other=0.0)[None, :]
        bias2 = tl.load(bias + 2 * H + j, mask=j < H, other=0.0)[None, :]
        if HELD > 1:
            w1 = _matrix(weight + H * H, True, H, HOW, BH)
        if HELD > 2:
            w2 = _matrix(weight + 2 * H * H, True, H, HOW, BH)
    if KIND == LSTM:
        bias3 = tl.load(bias + 3 * H + j, mask=j < H, other=0.0)[None, :]
        if HELD > 3:
            w3 = _matrix(weight + 3 * H * H, True, H, HOW, BH)
    given = drive + (run * T + (T - 1 if REVERSE else 0)) * (B * G * H) + rows[:, None] * (G * H) + j[None, :]
    forth: tl.constexpr = -B * G * H if REVERSE else B * G * H
    if AHEAD:
        x0, x1, x2, x3 = _inputs(given, inside, H, KIND)
    for step in range(T):
        time = T - 1 - step if REVERSE else step
        after = (time if REVERSE else time + 1) * (B * H)
        real = inside & (time < length)[:, None]
        kept = gates + (run * T + time) * (B * Q * H) + rows[:, None] * (Q * H) + j[None, :]
        if AHEAD:  # the inputs of the next step are asked for before the products of this one
            next0, next1, next2, next3 = _inputs(given + forth, inside & (step + 1 < T), H, KIND)
        else:
            x0, x1, x2, x3 = _inputs(given, inside, H, KIND)
        given += forth
        if HELD < 1:
            w0 = _matrix(weight, True, H, HOW, BH)
        own0 = times(state, w0, zero, HOW) + bias0
        if gated:
            if HELD < 2:
                w1 = _matrix(weight + H * H, True, H, HOW, BH)
            own1 = times(state, w1, zero, HOW) + bias1
            if HELD < 3:
                w2 = _matrix(weight + 2 * H * H, True, H, HOW, BH)
            own2 = times(state, w2, zero, HOW) + bias2
        if KIND == LSTM:
            if HELD < 4:
                w3 = _matrix(weight + 3 * H * H, True, H, HOW, BH)
            own3 = times(state, w3, zero, HOW) + bias3
            enter, keep, fresh, show, changed, new = lstm(own0 + x0, own1 + x1, own2 + x2, own3 + x3, memory)
            memory = tl.where(real, changed, memory)
            tl.store(kept_memories + after, memory, mask=inside)
            tl.store(kept, enter, mask=inside)
            tl.store(kept + H, keep, mask=inside)
            tl.store(kept + 2 * H, fresh, mask=inside)
            tl.store(kept + 3 * H, show, mask=inside)
        elif KIND == GRU:
            reset, keep, fresh, new = gru(own0 + x0, own1 + x1, x2, own2, state)
            tl.store(kept, reset, mask=inside)
            tl.store(kept + H, keep, mask=inside)
            tl.store(kept + 2 * H, fresh, mask=inside)
            tl.store(kept + 3 * H, own2, mask=inside)
        else:
            new = plain(own0 + x0, KIND)
            tl.store(kept, new, mask=inside)
        state = tl.where(real, new, state)
        tl.store(places + after, state, mask=inside)
        if AHEAD:
            x0, x1, x2, x3 = next0, next1, next2, next3


@triton.jit
def _backward(
    weight, lengths, states, memories, gates, dstates, dlast, dstate, dmemory, ddrive, dhidden,
    T: tl.constexpr, B: tl.constexpr, H: tl.constexpr, KIND: tl.constexpr, REVERSE: tl.constexpr, HOW: tl.constexpr,
    BB: tl.constexpr, BH: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(B, BB)
    run = (tl.program_id(0) // blocks).to(tl.int64)
    rows = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    G: tl.constexpr = 4 if KIND == LSTM else 3 if KIND == GRU else 1
    Q: tl.constexpr = 4 if KIND == LSTM or KIND == GRU else 1
    weight += run * (G * H * H)
    j = tl.arange(0, BH)
    inside = (rows < B)[:, None] & (j < H)[None, :]
    here = rows[:, None] * H + j[None, :]
    length = tl.load(lengths + run * B + rows, mask=rows < B, other=0)
    own = run * ((T + 1) * B * H) + here  # of the tensors with a place before the first step
    carried = tl.zeros((BB, BH), tl.float32)
    if KIND == LSTM:
        later = tl.load(dlast + run * (B * H) + here, mask=inside, other=0.0)
        changed = tl.load(memories + own + (0 if REVERSE else T) * (B * H), mask=inside, other=0.0)
    if HELD > 0:
        w0 = _matrix(weight, False, H, HOW, BH)
    if HELD > 1:
        w1 = _matrix(weight + H * H, False, H, HOW, BH)
    if HELD > 2:
        w2 = _matrix(weight + 2 * H * H, False, H, HOW, BH)
    if HELD > 3:
        w3 = _matrix(weight + 3 * H * H, False, H, HOW, BH)
    for step in range(T):
        time = step if REVERSE else T - 1 - step
        before = (time + 1 if REVERSE else time) * (B * H)
        real = inside & (time < length)[:, None]
        into = (run * T + time) * (B * G * H) + rows[:, None] * (G * H) + j[None, :]
        kept = gates + (run * T + time) * (B * Q * H) + rows[:, None] * (Q * H) + j[None, :]
        above = carried + tl.load(dstates + own + (time if REVERSE else time + 1) * (B * H), mask=inside, other=0.0)
        carried = tl.where(real, 0.0, above)
        gate0 = tl.load(kept, mask=inside, other=0.0)
        if KIND == LSTM:
            gate1 = tl.load(kept + H, mask=inside, other=0.0)
            gate2 = tl.load(kept + 2 * H, mask=inside, other=0.0)
            gate3 = tl.load(kept + 3 * H, mask=inside, other=0.0)
            memory = tl.load(memories + own + before, mask=inside, other=0.0)
            d0, d1, d2, d3, later = lstm_gradient(above, changed, memory, gate0, gate1, gate2, gate3, later, real)
            changed = memory
            tl.store(dhidden + into + H, d1, mask=inside)
            tl.store(dhidden + into + 2 * H, d2, mask=inside)
            tl.store(dhidden + into + 3 * H, d3, mask=inside)
        elif KIND == GRU:
            gate1 = tl.load(kept + H, mask=inside, other=0.0)
            gate2 = tl.load(kept + 2 * H, mask=inside, other=0.0)
            gate3 = tl.load(kept + 3 * H, mask=inside, other=0.0)
            old = tl.load(states + own + before, mask=inside, other=0.0)
            d0, d1, inner, d2 = gru_gradient(above, old, gate0, gate1, gate2, gate3, real)
            carried = tl.where(real, above * gate1, above)
            tl.store(ddrive + into, d0, mask=inside)
            tl.store(ddrive + into + H, d1, mask=inside)
            tl.store(ddrive + into + 2 * H, inner, mask=inside)
            tl.store(dhidden + into + H, d1, mask=inside)
            tl.store(dhidden + into + 2 * H, d2, mask=inside)
        else:
            d0 = plain_gradient(above, gate0, real, KIND)
        tl.store(dhidden + into, d0, mask=inside)
        if HELD < 1:
            w0 = _matrix(weight, False, H, HOW, BH)
        carried = times(d0, w0, carried, HOW)
        if KIND == LSTM or KIND == GRU:
            if HELD < 2:
                w1 = _matrix(weight + H * H, False, H, HOW, BH)
            carried = times(d1, w1, carried, HOW)
            if HELD < 3:
                w2 = _matrix(weight + 2 * H * H, False, H, HOW, BH)
            carried = times(d2, w2, carried, HOW)
        if KIND == LSTM:
            if HELD < 4:
                w3 = _matrix(weight + 3 * H * H, False, H, HOW, BH)
            carried = times(d3, w3, carried, HOW)
    carried += tl.load(dstates + own + (T if REVERSE else 0) * (B * H), mask=inside, other=0.0)
    tl.store(dstate + run * (B * H) + here, carried, mask=inside)
    if KIND == LSTM:
        tl.store(dmemory + run * (B * H) + here, later, mask=inside)


@dataclass(frozen=True)
class Tile:
    """Rows and units, gates whose weights are held, and warps."""

    rows: int
    units: int
    held: int
    warps: int
    ahead: bool = False  # whether the inputs of the next step are read during this one


def tile_of(hidden: int, gates: int, how: str, *, back: bool) -> Tile | None:
    """Not by the number of runs. None: the layer is too wide, a float32 one sooner, since it has each weight twice."""
    units = max(16, int(triton.next_power_of_2(hidden)))
    if units > (WIDEST if how != "tf32x3" else WIDEST // 2):
        return None
    if units <= WIDEST // 2:
        return Tile(16, units, gates, 4, ahead=how != "tf32x3" and not back)
    return Tile(16, units, gates if how.startswith("bf16") else min(gates, 2), 8)


def forward(tensors: tuple[Tensor, ...], made: tuple[Tensor, ...], kind: int, reverse: bool, how: str) -> bool:
    """Fill `made`: states, memories and gates. False: the layer is too wide."""
    drive, weight, bias, state, memory, lengths = tensors
    runs, time, rows, _ = drive.shape
    hidden = state.shape[-1]
    tile = tile_of(hidden, weight.shape[1] // hidden, how, back=False)
    if tile is None:
        return False
    _forward[(runs * triton.cdiv(rows, tile.rows),)](
        drive, weight, bias, lengths, state, memory, *made,
        time, rows, hidden, kind, reverse, how, tile.rows, tile.units, tile.held, tile.ahead,
        num_warps=tile.warps, num_stages=1,
    )  # fmt: skip
    return True


def backward(tensors: tuple[Tensor, ...], made: tuple[Tensor, ...], kind: int, reverse: bool, how: str) -> bool:
    """Fill `made`: the gradients of the first state and memory, of drive, and of the gates' recurrent part."""
    weight, lengths, states, memories, gates, dstates, dlast = tensors
    runs, places, rows, hidden = states.shape
    tile = tile_of(hidden, weight.shape[1] // hidden, how, back=True)
    if tile is None:
        return False
    _backward[(runs * triton.cdiv(rows, tile.rows),)](
        weight, lengths, states, memories, gates, dstates, dlast, *made,
        places - 1, rows, hidden, kind, reverse, how, tile.rows, tile.units, tile.held,
        num_warps=tile.warps, num_stages=1,
    )  # fmt: skip
    return True

"""One step of every recurrent cell, and its gradient, in plain operations: the formulas of `rnn`, `lstm` and `gru`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

KINDS = ("tanh", "relu", "sigmoid", "lstm", "gru")  # their numbers are those of the kernels
TANH, RELU, SIGMOID, LSTM, GRU = range(5)


class Gradients(NamedTuple):
    """Of a step: of the gates' recurrent part, of drive, of the state past the product, and of the memory."""

    hidden: Tensor
    drive: Tensor
    past: Tensor
    memory: Tensor


def step(kind: int, drive: Tensor, own: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The state and the memory after a step, and what the gradient needs of the gates; own = W_hh state + bias."""
    if kind == LSTM:
        enter, keep, fresh, show = (drive + own).chunk(4, dim=-1)
        parts = [enter.sigmoid(), keep.sigmoid(), fresh.tanh(), show.sigmoid()]
        changed = parts[1] * memory + parts[0] * parts[2]
        return parts[3] * changed.tanh(), changed, parts
    if kind == GRU:
        reset, update, fresh = drive.chunk(3, dim=-1)
        own_reset, own_update, own_fresh = own.chunk(3, dim=-1)
        parts = [(reset + own_reset).sigmoid(), (update + own_update).sigmoid()]
        parts += [(fresh + parts[0] * own_fresh).tanh(), own_fresh]
        return parts[2] + parts[1] * (state - parts[2]), memory, parts
    new = (torch.tanh, torch.relu, torch.sigmoid)[kind](drive + own)
    return new, memory, [new]


def gradient_step(
    kind: int, above: Tensor, gates: Tensor, around: tuple[Tensor, Tensor, Tensor], dmemory: Tensor
) -> Gradients:
    """`above` is the gradient of the state after the step, `dmemory` that of the memory after it.

    `around`: the state and the memory before the step, and the memory after it.
    """
    state, memory, changed = around
    if kind == LSTM:
        enter, keep, fresh, show = gates.chunk(4, dim=-1)
        bent = changed.tanh()
        inner = dmemory + above * show * (1 - bent.square())
        parts = [inner * fresh * enter * (1 - enter), inner * memory * keep * (1 - keep)]
        parts += [inner * enter * (1 - fresh.square()), above * bent * show * (1 - show)]
        hidden = torch.cat(parts, dim=-1)
        return Gradients(hidden, hidden, torch.zeros_like(above), inner * keep)
    if kind == GRU:
        reset, update, fresh, own = gates.chunk(4, dim=-1)
        inner = above * (1 - update) * (1 - fresh.square())
        parts = [inner * own * reset * (1 - reset), above * (state - fresh) * update * (1 - update)]
        hidden = torch.cat([*parts, inner * reset], dim=-1)
        return Gradients(hidden, torch.cat([*parts, inner], dim=-1), above * update, dmemory)
    slope = (1 - gates.square(), (gates > 0).to(gates), gates * (1 - gates))[kind]
    return Gradients(above * slope, above * slope, torch.zeros_like(above), dmemory)

"""A recurrent layer as products, one for each step, whose weights have one gradient product for the whole sequence.

Written as plain operations, the gradient of W_hh is a product for every step and a sum of as many matrices: with 512
units and 35 steps more than the steps themselves (H200, 10 runs: 1.1 of 7.7 ms). Here the gradients of all gates are
kept, as those of the inputs' projection are anyway, and one product at the end takes them all. The formulas are those
of `recurrent_scan`; all operations are torch's, so that tracing, vmap and the compiler see through.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tiebreak.layers.recurrent_steps import GRU, LSTM, gradient_step, step


class _Walk(torch.autograd.Function):
    """drive [T, B, G H], weight, bias, state, memory, lengths, kind, reverse: to the states [T, B, H], the last memory.

    After these come, for the gradient alone, the memory before each step and what it needs of each step's gates.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Any:
        drive, weight, bias, state, memory, lengths, kind, reverse = inputs
        found, memories, gates = [drive] * len(drive), [memory] * len(drive), [drive] * len(drive)
        for t in _order(len(drive), reverse):
            real = (t < lengths).unsqueeze(-1)
            own = state @ weight.mT + bias
            memories[t] = memory
            new, changed, parts = step(kind, drive[t], own, state, memory)
            state = torch.where(real, new, state)
            memory = torch.where(real, changed, memory) if kind == LSTM else memory
            found[t], gates[t] = state, torch.cat(parts, dim=-1)
        return torch.stack(found), memory.clone(), *(each.clone() for each in memories), *gates

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, weight, _, state, _, lengths, *ctx.how = inputs
        ctx.mark_non_differentiable(*output[2:])
        ctx.save_for_backward(weight, state, lengths, *output)

    @staticmethod
    def backward(ctx: Any, *outer: Any) -> Any:
        weight, first, lengths, states, last, *rest = ctx.saved_tensors
        (kind, reverse), time = ctx.how, len(states)
        memories, gates = rest[:time], rest[time:]
        before = torch.cat([states[1:], first[None]]) if reverse else torch.cat([first[None], states[:-1]])
        dhidden, ddrive = [first] * time, [first] * time
        dstate, dmemory, changed = torch.zeros_like(first), outer[1], last
        for t in reversed(_order(time, reverse)):
            real = (t < lengths).unsqueeze(-1)
            above = dstate + outer[0][t]
            found = gradient_step(kind, above, gates[t], (before[t], memories[t], changed), dmemory)
            dhidden[t] = torch.where(real, found.hidden, 0.0)
            ddrive[t] = torch.where(real, found.drive, 0.0) if kind == GRU else dhidden[t]
            dstate = torch.where(real, found.past, above) + dhidden[t] @ weight
            dmemory, changed = torch.where(real, found.memory, dmemory) if kind == LSTM else dmemory, memories[t]
        each = torch.stack(dhidden)
        dweight = each.flatten(0, 1).mT @ before.flatten(0, 1)
        drives = torch.stack(ddrive) if kind == GRU else each
        return drives, dweight, each.sum(dim=(0, 1)), dstate, dmemory, None, None, None


def walk(*inputs: Any) -> tuple[Tensor, Tensor]:
    """The states [T, B, H] after each step and the last memory, of the inputs that `_Walk` names."""
    states, last, *_ = _Walk.apply(*inputs)  # type: ignore[no-untyped-call]
    return states, last


def _order(time: int, reverse: bool) -> range:
    return range(time - 1, -1, -1) if reverse else range(time)

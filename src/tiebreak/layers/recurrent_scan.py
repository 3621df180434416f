"""A recurrent layer over a whole sequence as one op with its own gradient and vmap rule.

    states[t + 1] = step(drive[t], W_hh states[t] + bias)          drive = W_ih x, see `rnn`, `lstm`, `gru`

As plain products a sequence of T steps is some ten operations a step, forward and again backward: hundreds of launches
on a GPU. Here it is one op each way (`kernels.recurrent` on a GPU), and the gradient of W_hh one batched product over
all steps. Elsewhere the op is a loop over time for all runs at once, which is the kernel's specification.

All tensors have a leading run axis: drive [n, T, B, G H], weight [n, G H, H], bias [n, G H] (b_ih + b_hh; of the GRU
b_hh, and drive has b_ih), state and memory [n, B, H] (memory of the LSTM; else [n, 0]), lengths [n, B]. In the backward
direction steps go from T - 1 down, and the first state stands at place T.

Layers take the op on a GPU in float32 up to WIDEST units, and the loop over time otherwise: with 512 units one program
has to read too many weights at every step (H200, 10 runs of 35 steps: 26 ms, as products 2.5 ms). To measure,
TIEBREAK_RECURRENT_KERNEL=1 in the environment takes it everywhere and 0 nowhere.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import torch
from torch import Tensor

from tiebreak.layers.recurrent_steps import GRU, KINDS, LSTM, gradient_step, step
from tiebreak.layers.transforms import once_differentiated

WIDEST = 128  # units; H200, translator of 30 runs, TF32: 0.089 ms a step and run with the op, 0.127 without
ROOMY = (9, 10)  # GPUs by capability with the 227 KB of shared memory that the kernel's tiles need: Hopper, Blackwell
Form = Literal["kernel", "steps"]
FORMS: dict[str, Form] = {"0": "steps", "1": "kernel"}
FORCED = FORMS.get(os.environ.get("TIEBREAK_RECURRENT_KERNEL", ""))


def form_of(weight: Tensor) -> Form:
    """How layers with these recurrent weights [G H, H] go through time. The op has no second derivative."""
    if not once_differentiated():
        return "steps"
    if FORCED is not None:
        return FORCED
    if not weight.is_cuda or weight.dtype != torch.float32:
        return "steps"
    fits = weight.shape[-1] <= WIDEST and torch.cuda.get_device_capability(weight.device)[0] in ROOMY
    return "kernel" if fits else "steps"


@torch.library.custom_op("tiebreak::recur", mutates_args=())
def recur(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor]:
    """States [n, T + 1, B, H], memories (the same, or [n, 0]), and what the gradient needs of the gates."""
    drive, weight, bias, state, memory, lengths = tensors
    time, place = drive.shape[1], drive.shape[1] if reverse else 0
    hidden = state.shape[-1]
    states = state.new_empty(len(state), time + 1, *state.shape[1:])
    memories = torch.empty_like(states) if kind == LSTM else state.new_empty(len(state), 0)
    gates = state.new_empty(*drive.shape[:3], (4 if kind in (LSTM, GRU) else 1) * hidden)
    states[:, place] = state
    if kind == LSTM:
        memories[:, place] = memory
    for t in reversed(range(time)) if reverse else range(time):
        before, after = (t + 1, t) if reverse else (t, t + 1)
        real = (t < lengths).unsqueeze(-1)
        old, memory = states[:, before], memories[:, before] if kind == LSTM else memories
        new, changed, parts = step(kind, drive[:, t], old @ weight.mT + bias.unsqueeze(1), old, memory)
        if kind == LSTM:
            memories[:, after] = torch.where(real, changed, memory)
        gates[:, t] = torch.cat(parts, dim=-1)
        states[:, after] = torch.where(real, new, old)
    return states, memories, gates


@torch.library.custom_op("tiebreak::recur_gradient", mutates_args=())
def recur_gradient(
    tensors: list[Tensor], kind: int, reverse: bool, precision: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of drive, of the gates' recurrent part [n, T, B, G H], of the first state and the first memory.

    `dstates` is that of all states, `dlast` that of the last memory. Of drive [n, 0] where it is that of the gates.
    """
    weight, lengths, states, memories, gates, dstates, dlast = tensors
    time = gates.shape[1]
    dhidden = states.new_empty(*gates.shape[:3], weight.shape[1])
    ddrive = torch.empty_like(dhidden) if kind == GRU else states.new_empty(len(states), 0)
    dstate, dmemory = torch.zeros_like(states[:, 0]), dlast.clone()
    for t in range(time) if reverse else reversed(range(time)):
        before, after = (t + 1, t) if reverse else (t, t + 1)
        real = (t < lengths).unsqueeze(-1)
        above = dstate + dstates[:, after]
        around = (memories[:, before], memories[:, after]) if kind == LSTM else (memories, memories)
        found = gradient_step(kind, above, gates[:, t], (states[:, before], *around), dmemory)
        if kind == LSTM:
            dmemory = torch.where(real, found.memory, dmemory)
        elif kind == GRU:
            ddrive[:, t] = torch.where(real, found.drive, 0.0)
        dhidden[:, t] = torch.where(real, found.hidden, 0.0)
        dstate = torch.where(real, found.past, above) + dhidden[:, t] @ weight
    dstate = dstate + dstates[:, time if reverse else 0]
    return ddrive, dhidden, dstate, dmemory


@recur.register_fake
def _(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor]:
    drive, _, _, state, _, _ = tensors
    states = state.new_empty(len(state), drive.shape[1] + 1, *state.shape[1:])
    gates = state.new_empty(*drive.shape[:3], (4 if kind in (LSTM, GRU) else 1) * state.shape[-1])
    return states, torch.empty_like(states) if kind == LSTM else state.new_empty(len(state), 0), gates


@recur_gradient.register_fake
def _(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weight, _, states, _, gates, _, dlast = tensors
    dhidden = states.new_empty(*gates.shape[:3], weight.shape[1])
    ddrive = torch.empty_like(dhidden) if kind == GRU else states.new_empty(len(states), 0)
    return ddrive, dhidden, torch.empty_like(states[:, 0]), torch.empty_like(dlast)


@recur.register_kernel("cuda")
def _(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor]:
    from tiebreak.layers.kernels import recurrent

    return recurrent.forward(tensors, kind, reverse, precision)


@recur_gradient.register_kernel("cuda")
def _(tensors: list[Tensor], kind: int, reverse: bool, precision: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from tiebreak.layers.kernels import recurrent

    return recurrent.backward(tensors, kind, reverse, precision)


def _front(info: Any, tensor: Tensor, axis: int | None) -> Tensor:
    """The run axis first; what all runs share is repeated."""
    return tensor.expand(info.batch_size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)


class _Recur(torch.autograd.Function):
    """`recur` of one run, and under vmap of all of them. The last output is the last memory."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        found = torch.ops.tiebreak.recur([each[None] for each in inputs[:6]], *inputs[6:])
        return _with_last(*(each[0] for each in found), *inputs[6:8])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, weight, _, _, _, lengths, *ctx.how = inputs
        states, memories, gates, _ = output
        ctx.mark_non_differentiable(memories, gates)
        ctx.save_for_backward(weight, lengths, states, memories, gates)

    @staticmethod
    def backward(ctx: Any, *outer: Any) -> Any:
        weight, lengths, states, memories, gates = ctx.saved_tensors
        kind, reverse, _ = ctx.how
        ddrive, dhidden, dstate, dmemory = _RecurGradient.apply(  # type: ignore[no-untyped-call]
            weight, lengths, states, memories, gates, outer[0], outer[3], *ctx.how
        )
        before = states[1:] if reverse else states[:-1]
        dweight = dhidden.flatten(0, 1).mT @ before.flatten(0, 1)
        dbias = dhidden.sum(dim=(0, 1))
        return ddrive if kind == GRU else dhidden, dweight, dbias, dstate, dmemory, None, None, None, None

    @staticmethod
    def vmap(info: Any, axes: Any, *inputs: Any) -> Any:
        tensors = [_front(info, *each) for each in zip(inputs[:6], axes[:6], strict=True)]
        found = torch.ops.tiebreak.recur(tensors, *inputs[6:])
        return _with_last(*found, *inputs[6:8]), (0, 0, 0, 0)


def _with_last(states: Tensor, memories: Tensor, gates: Tensor, kind: int, reverse: bool) -> tuple[Tensor, ...]:
    """The outputs of `recur` with the last memory, for one run or with a run axis."""
    last = memories if kind != LSTM else memories.select(-3, 0 if reverse else -1)
    return states, memories, gates, last.clone()


class _RecurGradient(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> Any:
        found = torch.ops.tiebreak.recur_gradient([each[None] for each in inputs[:7]], *inputs[7:])
        return tuple(each[0] for each in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass  # a second derivative is nobody's business here: asking for it raises

    @staticmethod
    def vmap(info: Any, axes: Any, *inputs: Any) -> Any:
        tensors = [_front(info, *each) for each in zip(inputs[:7], axes[:7], strict=True)]
        return torch.ops.tiebreak.recur_gradient(tensors, *inputs[7:]), (0, 0, 0, 0)


def scan(
    drive: Tensor, weight: Tensor, bias: Tensor | None, parts: tuple[Tensor, ...], lengths: Tensor | None,
    *, kind: str, reverse: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
    """One layer in one direction of one run: drive [T, B, G H] to the states [T, B, H] after each step and the last."""
    number = KINDS.index(kind)
    if lengths is None:
        lengths = torch.full((drive.shape[1],), len(drive), device=drive.device)
    bias = bias if bias is not None else weight.new_zeros(len(weight))
    memory = parts[1] if number == LSTM else weight.new_zeros(0)
    given = drive.to(weight.dtype), weight, bias, parts[0].to(weight.dtype), memory.to(weight.dtype), lengths
    states, _, _, last = _Recur.apply(*given, number, reverse, _precision(weight))  # type: ignore[no-untyped-call]
    steps = states[:-1] if reverse else states[1:]
    end = states[0] if reverse else states[-1]
    return steps, (end, last) if number == LSTM else (end,)


def _precision(weight: Tensor) -> str:
    """How a GPU multiplies: as the run's other products."""
    if torch.is_autocast_enabled(weight.device.type):
        return "bf16"
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"

"""Recurrent layers in two forms: torch's own kernels for a run alone, and plain products that vmap and trace.

    h_t = f(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)          f tanh, relu or sigmoid

x [B, T, I] inputs, h [B, H] state; B batch, T time, I inputs, H hidden. The plain form projects the inputs of all steps
in one product and leaves only W_hh h to the loop over time. Torch's kernels have no vmap rule, so `plain` says which
form a layer takes: explicitly, because a layer cannot tell whether it is vmapped. Parameters, their names and initial
values are those of `nn.RNN` with batch_first, whose subclass this is: so they are in the one block cuDNN needs.

Rows may end early: past `lengths` the state stands still and the outputs are 0, which is what packing computes. The
backward direction walks from T - 1 down, so standing still also makes it start at a row's last real element.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiebreak.errors import TiebreakError
from tiebreak.layers import recurrent_scan

Whole = TypeVar("Whole")  # a state as torch's layer takes it: h, or (h, c)
Parts = tuple[Tensor, ...]  # the same as a tuple in any case; the first part is also the output

NONLINEARITIES = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}


class TwoForms:
    """A layer that has a plain form beside torch's own."""

    plain = False  # which form; set by `use_plain_cells`


class Recurrent(TwoForms, nn.RNNBase, Generic[Whole]):
    """Forms, directions and lengths. A subclass says how one step goes, and is the layer of torch of the same kind."""

    native = True  # whether torch has a kernel for this layer
    memories = 1  # parts of a state

    folds_bias = True  # whether b_hh can be added to the inputs' projection, outside the loop over time

    @abstractmethod
    def advance(self, drive: Tensor, parts: Parts, weight: Tensor, bias: Tensor | None) -> Parts:
        """The state after one step. `drive` [B, gates * H] is W_ih x + b_ih, and + b_hh where that is folded.

        `weight` is W_hh, `bias` b_hh where it is not folded.
        """

    def forward(self, x: Tensor, state: Whole | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Whole]:
        """x [B, T, I] to outputs [B, T, H * directions] and the last state, each part [layers * directions, B, H].

        `lengths` [B], each from 1 to T: how many elements of a row are real.
        """
        if self.plain or not self.native:
            return self._plain(x, state, lengths)
        if lengths is None:
            return super().forward(x, state)  # type: ignore[no-any-return]
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, last = super().forward(packed, state)
        return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], last

    def cell(self, x: Tensor, state: Whole | None = None) -> tuple[Tensor, Whole]:
        """One step, for decoders: x [B, I] to the output [B, H] and the next state. In either form a few products."""
        if self.bidirectional:
            raise TiebreakError("a bidirectional layer has no single step: its backward half starts at the end")
        outputs, last = self._plain(x.unsqueeze(1), state, None)
        return outputs.squeeze(1), last

    def _plain(self, x: Tensor, state: Whole | None, lengths: Tensor | None) -> tuple[Tensor, Whole]:
        first = self._parts(state, x, len(x))
        # Time first: what one step needs lies together.
        outputs, last = self.walk(x.transpose(0, 1), first, lengths)
        return outputs.transpose(0, 1), cast(Whole, last if self.memories > 1 else last[0])

    def walk(self, x: Tensor, first: Parts, lengths: Tensor | None) -> tuple[Tensor, Parts]:
        """The plain form: x [T, B, I] to outputs [T, B, H * directions] and the last state."""
        real = None  # [T, B, 1]
        if lengths is not None:
            real = (torch.arange(len(x), device=x.device)[:, None] < lengths).unsqueeze(-1)
        last: list[Parts] = []
        for layer in range(self.num_layers):
            if layer:
                x = self.between_layers(x)
            outputs = []
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                start = tuple(part[len(last)] for part in first)
                output, parts = self._scan(x, start, f"l{layer}{suffix}", lengths, real)
                outputs.append(output)
                last.append(parts)
            x = torch.cat(outputs, dim=-1) if self.bidirectional else outputs[0]
        return x, tuple(torch.stack(part) for part in zip(*last, strict=True))

    @abstractmethod
    def cell_kind(self) -> str:
        """Its name in `recurrent_scan`."""

    def form(self, name: str = "l0") -> recurrent_scan.Form:
        """How the plain form of a layer of the stack goes through time."""
        return "steps" if self.proj_size else recurrent_scan.form_of(getattr(self, f"weight_hh_{name}"))

    def between_layers(self, x: Tensor) -> Tensor:
        """What a layer of the stack gets of the outputs [T, B, H * directions] of the one below."""
        return x

    def _parts(self, state: Whole | None, x: Tensor, rows: int) -> Parts:
        if state is None:
            count = self.num_layers * (2 if self.bidirectional else 1)
            memory = (x.new_zeros(count, rows, self.hidden_size),) * self.memories
            return memory if not self.proj_size else (x.new_zeros(count, rows, self.proj_size), *memory[1:])
        return (state,) if isinstance(state, Tensor) else cast(Parts, state)

    def _scan(
        self, x: Tensor, parts: Parts, name: str, lengths: Tensor | None, real: Tensor | None
    ) -> tuple[Tensor, Parts]:
        """One layer in one direction: x [T, B, I] to outputs [T, B, H] and the state after the last step."""
        bias = getattr(self, f"bias_ih_{name}") if self.bias else None
        own_bias = getattr(self, f"bias_hh_{name}") if self.bias else None
        if bias is not None and own_bias is not None and self.folds_bias:
            bias, own_bias = bias + own_bias, None
        weight = getattr(self, f"weight_hh_{name}")
        form = self.form(name) if len(x) > 1 else "steps"
        if form != "steps" and self.folds_bias:  # it is added there
            bias, own_bias = None, bias
        drive = F.linear(x, getattr(self, f"weight_ih_{name}"), bias)
        if form != "steps":
            reverse = name.endswith("_reverse")
            found, last = recurrent_scan.scan(
                drive, weight, own_bias, parts, lengths, kind=self.cell_kind(), reverse=reverse
            )
            return found if real is None else torch.where(real, found, 0.0), last
        drives = drive.unbind(0)
        projection = getattr(self, f"weight_hr_{name}") if self.proj_size else None
        runs_on = real.unbind(0) if real is not None else ()
        outputs = list(drives)
        steps = range(len(drives))
        for step in reversed(steps) if name.endswith("_reverse") else steps:
            new = self.advance(drives[step], parts, weight, own_bias)
            if projection is not None:
                new = (F.linear(new[0], projection), *new[1:])
            if runs_on:
                new = tuple(torch.where(runs_on[step], after, before) for after, before in zip(new, parts, strict=True))
            parts = new
            outputs[step] = parts[0]
        stacked = torch.stack(outputs)
        return stacked if real is None else torch.where(real, stacked, 0.0), parts


class Rnn(Recurrent[Tensor], nn.RNN):  # type: ignore[misc]  # `forward` takes lengths where torch's takes packed input
    """The simplest recurrent layer; its state is h [layers * directions, B, H]. The sigmoid is plain in either form."""

    def __init__(
        self, inputs: int, hidden: int, nonlinearity: str = "tanh", *, bidirectional: bool = False, layers: int = 1
    ) -> None:
        native = nonlinearity != "sigmoid"  # torch knows tanh and relu, and refuses the rest
        name = nonlinearity if native else "tanh"
        super().__init__(
            inputs, hidden, num_layers=layers, nonlinearity=name, bidirectional=bidirectional, batch_first=True
        )
        self.native = native
        self.nonlinearity = nonlinearity

    def cell_kind(self) -> str:
        """Its nonlinearity."""
        return str(self.nonlinearity)

    def advance(self, drive: Tensor, parts: Parts, weight: Tensor, bias: Tensor | None) -> Parts:
        """h_t from W_ih x_t + b_ih + b_hh and h_{t-1}."""
        return (NONLINEARITIES[self.nonlinearity](drive + F.linear(parts[0], weight)),)


def use_plain_cells(network: nn.Module, on: bool) -> None:
    """Switch every recurrent layer of a network to the plain form, which vmaps and traces, or back to torch's own."""
    for layer in network.modules():
        if isinstance(layer, TwoForms):
            layer.plain = on

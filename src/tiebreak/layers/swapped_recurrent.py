"""`nn.LSTM`, `nn.GRU` and `nn.RNN` of a user's network in the two forms of `rnn`, called as torch's are.

All options: batch_first or not, packed sequences, a single sequence without a batch, initial states, bidirectional, no
bias, projections. Parameters, names and numbers are torch's own. A run alone takes torch's kernel; together with
others the plain form (`use_plain_cells`).

Dropout between the layers of a stack draws from torch's generator, which no run could repeat. Here it is a layer
`between` with a hashed mask (`dropout`), one number for each (step, row, unit), whichever form computes it: alone,
torch's kernel is called layer by layer.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import _VF, Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from tiebreak.layers.dropout import Dropout
from tiebreak.layers.gru import Gru
from tiebreak.layers.lstm import Lstm
from tiebreak.layers.packed_rows import PaddedRows, reordered
from tiebreak.layers.rnn import Parts, Recurrent, Rnn, TwoForms

BETWEEN = "between"  # the name of the dropout layer


class Swapped(Recurrent[Any]):
    """A recurrent layer that is called as torch's layer is."""

    torchs: type[nn.RNNBase]

    def forward(self, input: Any, hx: Any = None) -> Any:  # type: ignore[override]  # torch's signature
        """Outputs and the last state, as torch's layer returns them."""
        if not self.plain and not (self.training and BETWEEN in self._modules):
            return self.torchs.forward(self, input, hx)
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self.torchs.__name__}: the input should have 2 or 3 axes, not {input.ndim}")
        axis = 0 if self.batch_first else 1
        single = input.ndim == 2
        if single:
            input = input.unsqueeze(axis)
            hx = None if hx is None else self._whole(tuple(each.unsqueeze(1) for each in self._parts(hx, input, 1)))
        first = self._parts(hx, input, input.shape[axis])
        self.check_forward_args(input, self._whole(first), None)
        x = input.transpose(0, 1) if self.batch_first else input
        outputs, last = self.walk(x, first, None) if self.plain else self._layer_by_layer(x, first)
        outputs = outputs.transpose(0, 1) if self.batch_first else outputs
        if single:
            outputs, last = outputs.squeeze(axis), tuple(each.squeeze(1) for each in last)
        return outputs, self._whole(last)

    def flatten_parameters(self) -> None:
        """Bring the parameters into one block for cuDNN. Those of many runs stay where they are."""
        if not self.plain:
            super().flatten_parameters()

    def between_layers(self, x: Tensor) -> Tensor:
        """The outputs of the layer below, with dropout."""
        layer = self._modules.get(BETWEEN)
        return x if layer is None else cast(Tensor, layer(x))

    def _whole(self, parts: Parts) -> Any:
        return parts if self.memories > 1 else parts[0]

    def _packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, sizes, order, back = packed
        if isinstance(data, PaddedRows):
            values, last = self._rows(data.values, data.lengths, packed, hx)
            data = sizes = cast(Any, PaddedRows(values, data.lengths))
        elif self.plain:
            values, lengths = _VF._pad_packed_sequence(data, sizes, False, 0.0, len(sizes))
            values, last = self._rows(values, lengths.to(values.device), packed, hx)
            data = _VF._pack_padded_sequence(values, lengths, False)[0]
        else:
            first = tuple(_permuted(each, order) for each in self._parts(hx, data, int(sizes[0])))
            self.check_forward_args(data, self._whole(first), sizes)
            data, last = self._layer_by_layer(data, first, packed)
            last = tuple(_permuted(each, back) for each in last)
        return PackedSequence(data, sizes, order, back), self._whole(last)

    def _rows(self, x: Tensor, lengths: Tensor, packed: PackedSequence, hx: Any) -> tuple[Tensor, Parts]:
        """Padded rows [T, B, I] in the order of `packed`, by the plain form, which takes them in their own order."""
        x = _permuted(x, packed.unsorted_indices)
        lengths = lengths if packed.unsorted_indices is None else lengths[packed.unsorted_indices]
        first = self._parts(hx, x, x.shape[1])
        self.check_forward_args(x.transpose(0, 1) if self.batch_first else x, self._whole(first), None)
        outputs, last = self.walk(x, first, lengths)
        return _permuted(outputs, packed.sorted_indices), last

    def _layer_by_layer(self, x: Tensor, first: Parts, packed: PackedSequence | None = None) -> tuple[Tensor, Parts]:
        """Torch's kernel for every layer and dropout between them: x [T, B, I], or the data of a packed sequence."""
        self._update_flat_weights()
        kernel = getattr(_VF, self.mode.lower())
        directions = 2 if self.bidirectional else 1
        count = len(self._flat_weights) // self.num_layers
        last: list[Parts] = []
        for layer in range(self.num_layers):
            if layer:
                x = self.between_layers(x) if packed is None else self._between_packed(x, packed)
            start = self._whole(tuple(part[layer * directions : (layer + 1) * directions] for part in first))
            weights = self._flat_weights[layer * count : (layer + 1) * count]
            how = (weights, self.bias, 1, 0.0, self.training, self.bidirectional)
            x, *state = kernel(x, start, *how, False) if packed is None else kernel(x, packed[1], start, *how)
            last.append(tuple(state))
        return x, tuple(torch.cat(part) for part in zip(*last, strict=True))

    def _between_packed(self, data: Tensor, packed: PackedSequence) -> Tensor:
        """Dropout of packed data. The mask belongs to the rows in their own order, however they are sorted."""
        values, lengths = _VF._pad_packed_sequence(data, packed.batch_sizes, False, 0.0, len(packed.batch_sizes))
        values = _permuted(self.between_layers(_permuted(values, packed.unsorted_indices)), packed.sorted_indices)
        return _VF._pack_padded_sequence(values, lengths, False)[0]


def _permuted(x: Tensor, order: Tensor | None) -> Tensor:
    return x if order is None else reordered(x, 1, order)


class SwappedLstm(Swapped, Lstm):
    """`nn.LSTM`."""

    torchs = nn.LSTM


class SwappedGru(Swapped, Gru):
    """`nn.GRU`."""

    torchs = nn.GRU


class SwappedRnn(Swapped, Rnn):
    """`nn.RNN`, with tanh or relu."""

    torchs = nn.RNN


class SwappedCell(TwoForms, nn.RNNCellBase):
    """One step of a layer, called as torch's cell is."""

    torchs: type[Any]
    step: type[Recurrent[Any]]  # whose `advance` it is

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state of inputs [B, I], or of one [I]."""
        if not self.plain:
            return self.torchs.forward(self, input, hx)
        if input.ndim not in (1, 2):
            raise ValueError(f"{self.torchs.__name__}: the input should have 1 or 2 axes, not {input.ndim}")
        if hx is None:
            hx = (input.new_zeros(*input.shape[:-1], self.hidden_size),) * self.step.memories
        bias: Tensor | None = self.bias_ih if self.bias else None
        own_bias: Tensor | None = self.bias_hh if self.bias else None
        if bias is not None and own_bias is not None and self.step.folds_bias:
            bias, own_bias = bias + own_bias, None
        drive = F.linear(input, self.weight_ih, bias)
        parts = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        last = self.step.advance(cast(Any, self), drive, parts, self.weight_hh, own_bias)
        return last if self.step.memories > 1 else last[0]


class SwappedLstmCell(SwappedCell, nn.LSTMCell):
    """`nn.LSTMCell`."""

    torchs, step = nn.LSTMCell, Lstm


class SwappedGruCell(SwappedCell, nn.GRUCell):
    """`nn.GRUCell`."""

    torchs, step = nn.GRUCell, Gru


class SwappedRnnCell(SwappedCell, nn.RNNCell):
    """`nn.RNNCell`, with tanh or relu."""

    torchs, step = nn.RNNCell, Rnn


KINDS: dict[type[nn.Module], type[nn.Module]] = {
    nn.LSTM: SwappedLstm,
    nn.GRU: SwappedGru,
    nn.RNN: SwappedRnn,
    nn.LSTMCell: SwappedLstmCell,
    nn.GRUCell: SwappedGruCell,
    nn.RNNCell: SwappedRnnCell,
}


def swap_recurrent(network: nn.Module) -> None:
    """Turn torch's recurrent layers and cells into ours, in place: the objects stay, with parameters, names and hooks.

    A user's subclass stays what it is: it may do something else.
    """
    for layer in list(network.modules()):
        if type(layer) in KINDS:
            layer.__class__ = KINDS[type(layer)]
            if isinstance(layer, Swapped) and layer.dropout and layer.num_layers > 1:
                layer.add_module(BETWEEN, Dropout(layer.dropout))

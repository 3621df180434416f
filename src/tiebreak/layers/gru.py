"""Gated recurrent unit, in the two forms of `rnn`: torch's own kernel, and plain products that vmap and trace.

    r = sigmoid(W_ir x_t + b_ir + W_hr h_{t-1} + b_hr)
    z = sigmoid(W_iz x_t + b_iz + W_hz h_{t-1} + b_hz)
    n = tanh(W_in x_t + b_in + r (W_hn h_{t-1} + b_hn))
    h_t = (1 - z) n + z h_{t-1}

x [B, T, I] inputs, h [B, H] state, the three gates in torch's order within [B, 3 H]. The reset gate r acts on the
product and its bias, as in torch and cuDNN, and not on the state before it: so b_hh is no part of what can be computed
for all steps at once. Parameters, their names and their initial values are those of `nn.GRU` with batch_first.
Source: Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014), in the form of cuDNN.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.rnn import Parts, Recurrent


class Gru(Recurrent[Tensor], nn.GRU):  # type: ignore[misc]  # `forward` takes lengths, as in Rnn
    """The layer. Its state is h [layers * directions, B, H]."""

    folds_bias = False

    def __init__(self, inputs: int, hidden: int, *, bidirectional: bool = False, layers: int = 1) -> None:
        super().__init__(inputs, hidden, num_layers=layers, bidirectional=bidirectional, batch_first=True)

    def cell_kind(self) -> str:
        """Its name in `recurrent_scan`."""
        return "gru"

    def advance(self, drive: Tensor, parts: Parts, weight: Tensor, bias: Tensor | None) -> Parts:
        """h_t from W_ih x_t + b_ih and h_{t-1}."""
        (state,) = parts
        reset, update, new = drive.chunk(3, dim=-1)
        own_reset, own_update, own_new = F.linear(state, weight, bias).chunk(3, dim=-1)
        new = (new + (reset + own_reset).sigmoid() * own_new).tanh()
        return (new + (update + own_update).sigmoid() * (state - new),)

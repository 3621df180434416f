"""Long short-term memory, in the two forms of `rnn`: torch's own kernel, and plain products that vmap and trace.

    i, f, g, o = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g)
    h_t = sigmoid(o) tanh(c_t)

x [B, T, I] inputs, h and c [B, H] output and memory, the four gates in torch's order within [B, 4 H]. Parameters, their
names and their initial values are those of `nn.LSTM` with batch_first. On one CPU core (B=64, T=20, 64 to 128) the
plain form takes 1.1 to 1.4 times as long as torch's with the gradient and 1.6 without: a run alone keeps torch's.
Source: Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gate of Gers et al. (2000).
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.rnn import Parts, Recurrent


class Lstm(Recurrent[tuple[Tensor, Tensor]], nn.LSTM):  # type: ignore[misc]  # `forward` takes lengths, as in Rnn
    """The layer. Its state is (h, c), each [layers * directions, B, H]."""

    memories = 2

    def __init__(self, inputs: int, hidden: int, *, bidirectional: bool = False, layers: int = 1) -> None:
        super().__init__(inputs, hidden, num_layers=layers, bidirectional=bidirectional, batch_first=True)

    def cell_kind(self) -> str:
        """Its name in `recurrent_scan`."""
        return "lstm"

    def advance(self, drive: Tensor, parts: Parts, weight: Tensor, bias: Tensor | None) -> Parts:
        """(h_t, c_t) from W_ih x_t + b_ih + b_hh and (h_{t-1}, c_{t-1})."""
        output, memory = parts
        enter, keep, new, show = (drive + F.linear(output, weight)).chunk(4, dim=-1)
        memory = keep.sigmoid() * memory + enter.sigmoid() * new.tanh()
        return show.sigmoid() * memory.tanh(), memory

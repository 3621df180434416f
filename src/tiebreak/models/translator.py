"""Translators of the reports: an LSTM reads the source in both directions, another one writes the target.

    encoder   e(x_1) .. e(x_S), dropout, LSTM in both directions, dropout: memory h_1 .. h_S; both last states, joined,
              are the decoder's first
    decoder   e(y_0) .. e(y_{T-1}), dropout, LSTM, [attention to the memory], dropout, E e + b: the symbol after each

x [B, S] and y [B, T] symbols, B batch; embeddings, memory and decoder have `width` w, each direction half of it. The
output layer is the decoder's embedding E again, plus a bias. Parameters: 14 w^2 + 16 w of the LSTMs, w for
each symbol of either language and 1 for each of the target's: 240,162 at w = 128 and 34 symbols each, and 49,280 more
with attention (Luong et al. 2015, score "general", no input feeding).
"""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers import taylor
from tiebreak.layers.bilinear import Bilinear
from tiebreak.layers.dropout import Dropout
from tiebreak.layers.lstm import Lstm
from tiebreak.models.design import PADDING, Sentences

State = tuple[Tensor, Tensor, Tensor, Tensor]  # memory [B, S, w], real [B, S], and the LSTM's h and c [B, w]


class Translator(nn.Module):
    """Encoder and decoder; a design says what is between the decoder's LSTM and the output layer."""

    def __init__(self, shape: Sentences, width: int = 128) -> None:
        super().__init__()
        self.source = nn.Embedding(shape.sources, width)
        self.target = nn.Embedding(shape.targets, width)
        self.bias = nn.Parameter(torch.zeros(shape.targets))
        self.encoder = Lstm(width, width // 2, bidirectional=True)
        self.decoder = Lstm(width, width)
        self.dropout_source, self.dropout_memory = Dropout(0.3), Dropout(0.3)
        self.dropout_target, self.dropout_output = Dropout(0.3), Dropout(0.3)
        self.attention = self.make_attention(width)

    @abstractmethod
    def make_attention(self, width: int) -> nn.Module | None:
        """The layer between LSTM and output, called with queries, memory and its mask; None without attention."""

    @abstractmethod
    def attention_weights(self, source: Tensor, target: Tensor) -> Tensor | None:
        """The weights of each symbol of the target over those of the source [B, T, S]; None without attention."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits [B, T, targets] for the symbol after each of the target's, given those before it."""
        memory, real, hidden, cell = self.encode(source)
        outputs, _ = self.decoder(self.dropout_target(self.target(target)), (hidden[None], cell[None]))
        return self._logits(outputs, memory, real)

    def encode(self, source: Tensor) -> State:
        """The state in which decoding begins."""
        real = source != PADDING
        outputs, (hidden, cell) = self.encoder(self.dropout_source(self.source(source)), lengths=real.sum(dim=1))
        return self.dropout_memory(outputs), real, *(torch.cat([each[0], each[1]], dim=-1) for each in (hidden, cell))

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, targets] for the symbol after `token` [B], and the next state."""
        memory, real, hidden, cell = state
        embedded = self.dropout_target(self.target(token))
        output, (hidden, cell) = self.decoder.cell(embedded, (hidden[None], cell[None]))
        return self._logits(output[:, None], memory, real)[:, 0], (memory, real, hidden[0], cell[0])

    def _weights(self, source: Tensor, target: Tensor) -> Tensor:
        """The weights of the attention layer [B, T, S]."""
        memory, real, hidden, cell = self.encode(source)
        outputs, _ = self.decoder(self.dropout_target(self.target(target)), (hidden[None], cell[None]))
        assert self.attention is not None
        return self.attention(outputs, memory, real)[1]  # type: ignore[no-any-return]

    def _logits(self, outputs: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        if self.attention is not None:
            outputs = self.attention(outputs, memory, real)[0]
        return F.linear(self.dropout_output(outputs), self.target.weight, self.bias)


class TranslatorPlain(Translator):
    """Without attention: all that the decoder knows of the source is its first state."""

    def make_attention(self, width: int) -> None:
        """None."""

    def attention_weights(self, source: Tensor, target: Tensor) -> None:
        """None: there are no weights."""


class TranslatorAttention(Translator):
    """With bilinear attention to what the encoder made of every symbol."""

    def make_attention(self, width: int) -> nn.Module:
        """The bilinear layer."""
        return Bilinear(width, width, width)

    def attention_weights(self, source: Tensor, target: Tensor) -> Tensor:
        """The weights of each symbol of the target over those of the source [B, T, S]."""
        return self._weights(source, target)


class TaylorBilinear(Bilinear):
    """Bilinear attention whose exponential is cut after the square; scores are scaled by 1 / sqrt(memory size).

    The scale keeps them small, where the cut hardly matters.
    """

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, O] and weights [B, T, L]."""
        scores = self.score(query)
        context = taylor.attend(scores, memory, memory, mask=mask)
        products = scores @ memory.mT * memory.shape[-1] ** -0.5
        weights = 1 + products + products.square() / 2
        if mask is not None:
            weights = weights.masked_fill(~mask.unsqueeze(-2), 0.0)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return torch.tanh(self.output(torch.cat([query, context], dim=-1))), weights


class TranslatorTaylor(Translator):
    """The same with Taylor attention, whose cost is linear in the length."""

    def attention_weights(self, source: Tensor, target: Tensor) -> Tensor:
        """The weights of each symbol of the target over those of the source [B, T, S]."""
        return self._weights(source, target)

    def make_attention(self, width: int) -> nn.Module:
        """The bilinear layer with Taylor weights."""
        return TaylorBilinear(width, width, width)

"""Recognisers of the speech reports: one encoder (`speech_encoder`), and a decoder with an LSTM or with self-attention.

    LSTM        N e(y), LSTM                                   e(y) embedding of the symbols so far, N LayerNorm
    attention   z = e(y) + p, z + A(N z), A causal             p learned positions
    both        then a block of cross-attention to the memory, N, a linear layer: the symbol after each

y [B, T] symbols. Parameters at 80 mels, w = 200, 35 symbols and 98 places: 1,471,235 with the LSTM, 1,329,835 with
attention. `speech-taylor` is the second with Taylor attention in the encoder and towards it. None has dropout.

A state is a dictionary of tensors with the batch first: the keys and values of the memory, `real` where frames were
given, and either the LSTM's `hidden` and `cell` or the `past_keys` and `past_values` of the symbols so far.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from tiebreak.layers.heads import KeyValues, MultiHead
from tiebreak.layers.lstm import Lstm
from tiebreak.models.design import Clips
from tiebreak.models.speech_encoder import HEADS, Block, Encoder

State = dict[str, Tensor]


class Recogniser(nn.Module):
    """What the decoders share. A decoder has `decode_symbols`, and `begin` for the state before the first symbol."""

    def __init__(
        self, shape: Clips, width: int = 200, strides: int = 1, augment: int = 0, kind: str = "softmax"
    ) -> None:
        super().__init__()
        self.encoder = Encoder(shape.mels, width, strides, kind, augment)
        self.embedding = nn.Embedding(shape.symbols, width)
        self.cross = Block(width, kind)
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, shape.symbols)

    @abstractmethod
    def begin(self, rows: Tensor) -> State:
        """The decoder's own part of the first state, for as many rows as `rows` has."""

    @abstractmethod
    def decode_symbols(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """From the next symbols [B, T]: queries [B, T, w] for cross-attention, and its own part of the next state."""

    def forward(self, features: Tensor, symbols: Tensor, frames: Tensor | None = None) -> Tensor:
        """Logits [B, T, symbols] for the symbol after each of `symbols`; `frames` [B]: how many are sound."""
        state = self.encode(features, frames)
        queries, _ = self.decode_symbols(symbols, state)
        return self._logits(queries, state)

    def encode(self, features: Tensor, frames: Tensor | None = None) -> State:
        """The state in which decoding begins."""
        encoded, real = self.encoder(features, frames)
        memory = self.cross.attention.project_memory(encoded)
        state = {"keys": memory.keys, "values": memory.values, **self.begin(encoded)}
        return state if real is None else {**state, "real": real}

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, symbols] for the symbol after `token` [B], and the next state."""
        queries, own = self.decode_symbols(token[:, None], state)
        return self._logits(queries, state)[:, 0], {**state, **own}

    def attention_weights(self, features: Tensor, symbols: Tensor, frames: Tensor | None = None) -> Tensor:
        """The weights of each symbol over the places of the memory, the mean over heads [B, T, S]."""
        state = self.encode(features, frames)
        queries, _ = self.decode_symbols(symbols, state)
        return self.cross.weights(queries, KeyValues(state["keys"], state["values"]), real=state.get("real"))

    def _logits(self, queries: Tensor, state: State) -> Tensor:
        attended = self.cross(queries, KeyValues(state["keys"], state["values"]), real=state.get("real"))
        return self.output(self.norm(attended))  # type: ignore[no-any-return]


class SpeechLstm(Recogniser):
    """The LSTM decoder."""

    def __init__(self, shape: Clips, width: int = 200, strides: int = 1, augment: int = 0) -> None:
        super().__init__(shape, width, strides, augment)
        self.norm_embedding, self.lstm = nn.LayerNorm(width), Lstm(width, width)

    def begin(self, rows: Tensor) -> State:
        """Zeros."""
        zeros = torch.zeros_like(rows[:, 0])
        return {"hidden": zeros, "cell": zeros}

    def decode_symbols(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The LSTM's outputs."""
        x, parts = self.norm_embedding(self.embedding(tokens)), (state["hidden"][None], state["cell"][None])
        if tokens.shape[1] == 1:  # while decoding: torch's kernel for whole sequences does not pay for one symbol
            output, (hidden, cell) = self.lstm.cell(x[:, 0], parts)
            return output[:, None], {"hidden": hidden[0], "cell": cell[0]}
        outputs, (hidden, cell) = self.lstm(x, parts)
        return outputs, {"hidden": hidden[0], "cell": cell[0]}


class AttentionRecogniser(Recogniser):
    """The attention decoder, with a learned position for each place of the longest target."""

    def __init__(self, shape: Clips, width: int, strides: int, augment: int, kind: str) -> None:
        super().__init__(shape, width, strides, augment, kind)
        self.places = nn.Parameter(torch.rand(shape.length, width))
        self.norm_own, self.own = nn.LayerNorm(width), MultiHead(width, HEADS, bias="not-keys")

    def begin(self, rows: Tensor) -> State:
        """Keys and values of length 0."""
        empty = rows.new_zeros(rows.shape[0], HEADS, 0, rows.shape[-1] // HEADS)
        return {"past_keys": empty, "past_values": empty}

    def decode_symbols(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Causal self-attention over the symbols so far."""
        first = state["past_keys"].shape[-2]
        z = self.embedding(tokens) + self.places[first : first + tokens.shape[1]]
        past = KeyValues(state["past_keys"], state["past_values"]) if first else None
        attended, now = self.own.step(self.norm_own(z), past)
        return z + attended, {"past_keys": now.keys, "past_values": now.values}


class SpeechAttention(AttentionRecogniser):
    """Softmax attention everywhere."""

    def __init__(self, shape: Clips, width: int = 200, strides: int = 1, augment: int = 0) -> None:
        super().__init__(shape, width, strides, augment, kind="softmax")


class SpeechTaylor(AttentionRecogniser):
    """The same with Taylor attention in the encoder and in cross-attention, linear in the length of the clip."""

    def __init__(self, shape: Clips, width: int = 200, strides: int = 1, augment: int = 0) -> None:
        super().__init__(shape, width, strides, augment, kind="taylor")

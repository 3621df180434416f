"""A small transformer as translator, about as large as the LSTM with attention: two layers on either side.

    encoder   x + A(N x), x + M(N x), twice, then N          A attention, M two linear layers with GELU, N LayerNorm
    decoder   y + A(N y) causal, y + A(N y, memory), y + M(N y), twice, then N, and E y + b

E is the decoder's embedding again. Positions are added as sinusoids. Dropout after each embedding, A and M. Width 80, 4
heads, hidden 160: 265,794 parameters at 34 symbols each. Source: Vaswani et al., "Attention is all you need" (2017),
with the norm before each part (Xiong et al. 2020), which trains without a warm-up.
"""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.dropout import Dropout
from tiebreak.layers.heads import KeyValues, MultiHead
from tiebreak.models.design import PADDING, Sentences

LAYERS, HEADS, DROPOUT = 2, 4, 0.1
# real [B, S]; for each decoder layer the keys and values of the source, and those of the target so far
State = tuple[Tensor, list[KeyValues], list[KeyValues]]


class TranslatorTransformer(nn.Module):
    """The encoder and decoder."""

    def __init__(self, shape: Sentences, width: int = 80) -> None:
        super().__init__()
        self.source = nn.Embedding(shape.sources, width)
        self.target = nn.Embedding(shape.targets, width)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=width**-0.5)
        self.bias = nn.Parameter(torch.zeros(shape.targets))
        self.encoder = nn.ModuleList(Block(width, cross=False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Block(width, cross=True) for _ in range(LAYERS))
        self.norm_source, self.norm_target = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout_source, self.dropout_target = Dropout(DROPOUT), Dropout(DROPOUT)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits [B, T, targets] for the symbol after each of the target's, given those before it."""
        real, memories, _ = self.encode(source)
        y = self.dropout_target(self._embed(self.target, target, 0))
        for block, memory in zip(self.decoder, memories, strict=True):
            y, _ = block(y, None, memory=memory, real=real)
        return F.linear(self.norm_target(y), self.target.weight, self.bias)

    def encode(self, source: Tensor) -> State:
        """The state in which decoding begins."""
        real = source != PADDING
        x = self.dropout_source(self._embed(self.source, source, 0))
        for block in self.encoder:
            x = cast(Block, block).encode_layer(x, real)
        x = self.norm_source(x)
        return real, [cast(Block, block).project_memory(x) for block in self.decoder], self._empty_caches(x)

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, targets] for the symbol after `token` [B], and the next state."""
        real, memories, pasts = state
        place = pasts[0].keys.shape[-2]
        y = self.dropout_target(self._embed(self.target, token[:, None], place))
        now: list[KeyValues] = []
        for block, memory, past in zip(self.decoder, memories, pasts, strict=True):
            y, after = block(y, past, memory=memory, real=real)
            now.append(after)
        return F.linear(self.norm_target(y[:, 0]), self.target.weight, self.bias), (real, memories, now)

    def attention_weights(self, source: Tensor, target: Tensor) -> Tensor | None:
        """None: layers and heads have different weights, and no single map represents them."""
        return None

    def _empty_caches(self, x: Tensor) -> list[KeyValues]:
        """For each layer, keys and values of length 0: a state consists of tensors from the beginning."""
        empty = x.new_zeros(len(x), HEADS, 0, x.shape[-1] // HEADS)
        return [KeyValues(empty, empty)] * LAYERS

    def _embed(self, table: nn.Embedding, symbols: Tensor, first: int) -> Tensor:
        width = table.embedding_dim
        places = sinusoids(first, symbols.shape[1], width, table.weight)
        return table(symbols) * math.sqrt(width) + places  # type: ignore[no-any-return]


class Block(nn.Module):
    """One layer: self-attention, cross-attention (decoder only) and two linear layers, each with a norm and a skip."""

    def __init__(self, width: int, *, cross: bool) -> None:
        super().__init__()
        self.norm, self.own = nn.LayerNorm(width), MultiHead(width, HEADS, bias="not-keys")
        self.norm_cross = nn.LayerNorm(width) if cross else None
        self.cross = MultiHead(width, HEADS, bias="not-keys") if cross else None
        self.norm_hidden = nn.LayerNorm(width)
        self.hidden, self.output = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout_own, self.dropout_hidden = Dropout(DROPOUT), Dropout(DROPOUT)
        self.dropout_cross = Dropout(DROPOUT) if cross else None

    def encode_layer(self, x: Tensor, real: Tensor) -> Tensor:
        """An encoder layer."""
        return self._feed_forward(x + self.dropout_own(self.own(self.norm(x), real=real)))

    def project_memory(self, source: Tensor) -> KeyValues:
        """Keys and values of the encoded source, for cross-attention."""
        assert self.cross is not None
        return self.cross.project_memory(source)

    def forward(
        self, y: Tensor, past: KeyValues | None, *, memory: KeyValues, real: Tensor
    ) -> tuple[Tensor, KeyValues]:
        """A decoder layer: outputs for new elements [B, T, w] after `past`, and keys and values that include them."""
        assert self.cross is not None
        assert self.norm_cross is not None
        assert self.dropout_cross is not None
        attended, now = self.own.step(self.norm(y), past)
        y = y + self.dropout_own(attended)
        y = y + self.dropout_cross(self.cross.attend_to(self.norm_cross(y), memory, real=real))
        return self._feed_forward(y), now

    def _feed_forward(self, x: Tensor) -> Tensor:
        return x + self.dropout_hidden(self.output(F.gelu(self.hidden(self.norm_hidden(x)))))  # type: ignore[no-any-return]


def sinusoids(first: int, length: int, width: int, like: Tensor) -> Tensor:
    """Positions [length, width] from `first` on: sines in the first half, cosines in the second."""
    places = torch.arange(first, first + length, dtype=like.dtype, device=like.device)
    speeds = torch.exp(
        torch.arange(width // 2, dtype=like.dtype, device=like.device) * (-math.log(10_000) / (width // 2))
    )
    angles = places[:, None] * speeds
    return torch.cat([angles.sin(), angles.cos()], dim=-1)

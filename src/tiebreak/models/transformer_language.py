"""Transformers as language models: every word attends to the words before it in its window.

    x = E e(x_t) + position,  x + A(N x), x + M(N x) for every layer, then N, and E^T x + b

A causal attention (softmax, or its Taylor features), M two linear layers with GELU, N LayerNorm; E the embedding, which
is the output layer again. Positions are sinusoids; dropout after the embedding and every A and M. Nothing is carried on
from one window to the next, so that a word sees the window at most: in writing too, where other positions would be new.
Width 464, 8 heads, two layers, hidden 928: 8,104,944 parameters at 10,000 words, about as many as the recurrent ones.
Source: Vaswani et al. (2017), with the norm before each part (Xiong et al. 2020), which trains without a warm-up.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.dropout import Dropout
from tiebreak.layers.heads import MultiHead
from tiebreak.models.design import Words
from tiebreak.models.transformer_translator import sinusoids

DROPOUT = 0.1


class TransformerLanguage(nn.Module):
    """The network; a design says which kind of attention it has."""

    kind: ClassVar[str]

    def __init__(self, shape: Words, width: int = 464, layers: int = 2, heads: int = 8) -> None:
        super().__init__()
        if width % 2:
            raise TiebreakError(f"a width of {width} has no halves for sines and cosines; use an even one")
        self.window = shape.window
        self.embedding = nn.Embedding(shape.words, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.bias = nn.Parameter(torch.zeros(shape.words))
        self.blocks = nn.ModuleList(Block(width, heads, self.kind) for _ in range(layers))
        self.norm, self.dropout = nn.LayerNorm(width), Dropout(DROPOUT)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, S, T, words] for the token after each of tokens [B, S, T]."""
        table = self.embedding.weight
        x = self.embedding(tokens.flatten(0, 1)) * math.sqrt(table.shape[1])
        x = self.dropout(x + sinusoids(0, tokens.shape[-1], table.shape[1], table))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), table, self.bias).view(*tokens.shape, -1)

    def begin(self, rows: int) -> Tensor:
        """The state in which a text begins: no tokens [B, 0]."""
        return torch.zeros(rows, 0, dtype=torch.long, device=self.bias.device)

    def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, words] for the token after `token` [B], and the next state: the tokens of the last window."""
        state = torch.cat([state, token[:, None]], dim=1)[:, -self.window :]
        return self(state[None])[0, :, -1], state


class Transformer(TransformerLanguage):
    """With softmax attention."""

    kind = "softmax"


class TaylorTransformer(TransformerLanguage):
    """With Taylor attention, linear in the length."""

    kind = "taylor"


class Block(nn.Module):
    """One layer: causal attention, and two linear layers; each after a norm, with a residual connection."""

    def __init__(self, width: int, heads: int, kind: str) -> None:
        super().__init__()
        self.norm, self.norm_hidden = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = MultiHead(width, heads, kind=kind, bias="not-keys")
        self.hidden, self.output = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout, self.dropout_hidden = Dropout(DROPOUT), Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        """x [R, T, w] to the same shape."""
        x = x + self.dropout(self.attention(self.norm(x), causal=True))
        return x + self.dropout_hidden(self.output(F.gelu(self.hidden(self.norm_hidden(x)))))  # type: ignore[no-any-return]

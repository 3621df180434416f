"""Users' networks made of torch's layers."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import orthogonal

from support.zoo import WIDTH, Net, trains
from tiebreak.models.design import Images


@trains()
class Norms(Net):
    def more(self) -> None:
        self.norms = nn.Sequential(nn.GroupNorm(2, WIDTH), nn.LayerNorm(WIDTH), nn.InstanceNorm1d(1))

    def middle(self, x: Any) -> Any:
        x = self.norms[1](self.norms[0](x))
        return F.relu(self.norms[2](x[:, None]).flatten(1))


@trains(fusible=False)
class Lstm(Net):
    def more(self) -> None:
        self.rnn = nn.LSTM(2, WIDTH, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2)))[0][:, -1]


@trains(fusible=False)
class Gru(Net):
    def more(self) -> None:
        self.rnn = nn.GRU(2, WIDTH, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2)))[0][:, -1]


@trains(draws=True)
class MultiHead(Net):
    def more(self) -> None:
        self.attention = nn.MultiheadAttention(2, 2, dropout=0.3, batch_first=True)

    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (4, 2))
        return self.attention(rows, rows, rows)[0].flatten(1)


@trains()
class MultiHeadWithoutDropout(MultiHead):
    def more(self) -> None:
        self.attention = nn.MultiheadAttention(2, 2, batch_first=True)


@trains(draws=True)
class EncoderLayer(Net):
    def more(self) -> None:
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.layer(x.unflatten(1, (2, 4))).flatten(1)


@trains(draws=True)
class DotProductAttention(Net):
    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (4, 2))
        p = 0.3 if self.training else 0.0
        return F.scaled_dot_product_attention(rows, rows, rows, dropout_p=p, is_causal=True).flatten(1)


@trains()
class Convolutions(nn.Module):
    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.grouped, self.deep = nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, groups=4, padding=1)
        self.up, self.shuffle = nn.ConvTranspose2d(4, 4, 2, stride=2), nn.PixelShuffle(2)
        self.pool, self.out = nn.AdaptiveAvgPool2d(2), nn.Linear(4, shape.classes)

    def forward(self, images: Any) -> Any:
        x = F.relu(self.deep(self.grouped(F.relu(self.stem(images)))))
        return self.out(self.pool(self.shuffle(self.up(x))).flatten(1))


@trains()
class EmbedsPixels(nn.Module):
    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(8, 3), nn.Linear(3, shape.classes)

    def forward(self, images: Any) -> Any:
        symbols = images.flatten(1).mul(2).round().clamp(0, 7).long()
        return self.out(self.embedding(symbols).mean(dim=1))


@trains()
class Orthogonal(Net):
    def more(self) -> None:
        self.turn = orthogonal(nn.Linear(WIDTH, WIDTH, bias=False), orthogonal_map="cayley", use_trivialization=False)

    def middle(self, x: Any) -> Any:
        return F.relu(self.turn(x))

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


@trains()
class NormOfParts(Net):
    """Batch normalisation of rows that are parts of examples: right as long as no batch is padded."""

    def more(self) -> None:
        self.norm = nn.BatchNorm1d(2)

    def middle(self, x: Any) -> Any:
        return F.relu(self.norm(x.reshape(-1, 2)).reshape(x.shape))


@trains()
class PerInstance(nn.Module):
    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4, affine=True)
        self.out = nn.Linear(4, shape.classes)

    def forward(self, images: Any) -> Any:
        return self.out(F.relu(self.norm(self.conv(images))).mean(dim=(2, 3)))


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

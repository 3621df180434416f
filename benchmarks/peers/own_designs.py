"""Networks as users bring them, in plain torch, with a task, examples and a size for a trial run each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiebreak.models.design import Images, Sentences, Shape, Words


class Block(nn.Module):
    """Two 3 x 3 convolutions with a normalisation each, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_first, self.norm_second = norm(outputs), norm(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """x [B, C, H, W]."""
        y = F.relu(self.norm_first(self.first(x)))
        return F.relu(self.norm_second(self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """Six blocks of 16, 32 and 64 channels."""

    def __init__(self, shape: Images, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(shape.channels, 16, 3, 1, 1, bias=False), norm(16)
        widths = ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))
        self.blocks = nn.Sequential(*(Block(*each, norm) for each in widths))
        self.out = nn.Linear(64, shape.classes)

    def forward(self, images: Tensor) -> Any:
        """Logits."""
        return self.out(self.blocks(F.relu(self.norm(self.stem(images)))).mean(dim=(2, 3)))


class Separable(nn.Module):
    """Depthwise and pointwise convolutions in turn."""

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.stem = nn.Conv2d(shape.channels, 16, 3, 2, 1, bias=False)
        sizes = ((16, 32, 1), (32, 64, 2), (64, 64, 1))
        self.deep = nn.ModuleList(nn.Conv2d(a, a, 3, step, 1, groups=a, bias=False) for a, _, step in sizes)
        self.points = nn.ModuleList(nn.Conv2d(a, b, 1, bias=False) for a, b, _ in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _ in sizes)
        self.out = nn.Linear(64, shape.classes)

    def forward(self, images: Tensor) -> Any:
        """Logits."""
        x = F.relu(self.stem(images))
        for deep, point, norm in zip(self.deep, self.points, self.norms, strict=True):
            x = F.relu(norm(point(deep(x))))
        return self.out(x.mean(dim=(2, 3)))


class Vit(nn.Module):
    """A vision transformer of torch's layers: patches of 7 x 7, width 64, four layers."""

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.patches = nn.Conv2d(shape.channels, 64, 7, 7)
        self.places = nn.Parameter(torch.randn(1, shape.height // 7 * (shape.width // 7), 64) * 0.02)
        layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, nn.LayerNorm(64), enable_nested_tensor=False)
        self.out = nn.Linear(64, shape.classes)

    def forward(self, images: Tensor) -> Any:
        """Logits."""
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.out(self.encoder(x).mean(dim=1))


class TranslatorOfLstms(nn.Module):
    """A bidirectional encoder of packed sentences, a decoder, bilinear attention; the output layer is the embedding."""

    def __init__(self, shape: Sentences, width: int = 128) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(shape.sources, width), nn.Embedding(shape.targets, width)
        self.encoder = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.score, self.output = nn.Linear(width, width, bias=False), nn.Linear(2 * width, width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits."""
        real = source != 0
        lengths = real.sum(dim=1).cpu()
        packed = pack_padded_sequence(self.source(source), lengths, batch_first=True, enforce_sorted=False)
        outputs, (hidden, cell) = self.encoder(packed)
        memory = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])[0]
        first = tuple(torch.cat([each[0], each[1]], dim=-1)[None] for each in (hidden, cell))
        out, _ = self.decoder(self.target(target), first)
        weights = (self.score(out) @ memory.mT).masked_fill(~real[:, None], -1e9).softmax(dim=-1)
        out = torch.tanh(self.output(torch.cat([out, weights @ memory], dim=-1)))
        return F.linear(out, self.target.weight)


class LstmModel(nn.Module):
    """A language model: embedding, one LSTM, output layer."""

    def __init__(self, shape: Words, embedding: int = 256, hidden: int = 512) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, embedding)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True)
        self.out = nn.Linear(hidden, shape.words)

    def forward(self, tokens: Tensor) -> Any:
        """Logits [B, S, T, words]."""
        return self.out(self.lstm(self.embedding(tokens.flatten(0, 1)))[0]).view(*tokens.shape, -1)


def images(shape: Any, count: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Noise and labels."""
    pixels = torch.rand(count, shape.channels, shape.height, shape.width, generator=generator)
    return {"images": pixels, "labels": torch.randint(shape.classes, (count,), generator=generator)}


def sentences(shape: Any, count: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Random symbols; sources of random lengths."""
    source = torch.randint(4, shape.sources, (count, shape.source_length), generator=generator)
    sizes = torch.randint(1, shape.source_length + 1, (count, 1), generator=generator)
    targets = torch.randint(4, shape.targets, (count, shape.target_length), generator=generator)
    source = torch.where(torch.arange(shape.source_length) < sizes, source, 0)
    return {"source": source, "inputs": targets.roll(1, dims=1), "targets": targets}


def windows(shape: Any, count: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Random words."""
    size = (count, shape.streams, shape.window)
    inputs, targets = (torch.randint(shape.words, size, generator=generator) for _ in range(2))
    return {"inputs": inputs, "targets": targets, "real": torch.ones(size)}


@dataclass(frozen=True, kw_only=True)
class OwnNet:
    """A network and what it is trained on."""

    build: Callable[[Any], nn.Module]
    task: str
    family: str
    shape: Shape
    small: Shape  # for a trial run
    examples: Callable[[Any, int, torch.Generator], dict[str, Tensor]]
    batch: int = 64


def _classifier(build: Callable[[Any], nn.Module]) -> OwnNet:
    large, small = (Images(channels=1, height=side, width=side, classes=10) for side in (28, 14))
    return OwnNet(build=build, task="classify", family="classifier", shape=large, small=small, examples=images)


OWN_NETS: dict[str, OwnNet] = {
    "resnet-batchnorm": _classifier(partial(ResNet, norm=nn.BatchNorm2d)),
    "resnet-groupnorm": _classifier(partial(ResNet, norm=partial(nn.GroupNorm, 4))),
    "vit": _classifier(Vit),
    "separable": _classifier(Separable),
    "translator": OwnNet(
        build=TranslatorOfLstms,
        task="translate",
        family="translator",
        shape=Sentences(sources=34, targets=34, source_length=20, target_length=20),
        small=Sentences(sources=9, targets=9, source_length=4, target_length=3),
        examples=sentences,
    ),
    "lstm-language": OwnNet(
        build=LstmModel,
        task="language",
        family="language",
        shape=Words(words=10_000, streams=64, window=35),
        small=Words(words=20, streams=4, window=3),
        examples=windows,
        batch=1,
    ),
}

"""The encoder of the recognisers: two convolutions over time and two blocks of attention, as in the speech reports.

    x_0 = features [B, frames, mels];   x_1 = GELU(conv(x_0));   x_2 = GELU(conv(x_1)) + positions, half as many
    twice: x + A(N x), x + M(N x);   then N          A two heads, M w to 2 w to w with GELU, N LayerNorm

Filters are 3 wide with padding 1; the second convolution has stride 2 (with `strides` 2 the first has it too). At 80
mels and w = 200 these are 812,800 parameters. Queries and keys are each scaled by D^(-1/4), D = w / 2: the usual
1 / sqrt(D) of their product. Source: the encoder of Radford et al., "Robust speech recognition via large-scale weak
supervision" (2023), made small.

`frames` [B] says how many frames of each row are sound. The frames after them are set to zero before each convolution,
as the padding at a clip's end is, and are masked in attention. Without `frames` all of a row counts as sound, zeros
included, as in the reports. `augment` is the number of stretches of time and of bands that SpecAugment masks.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.heads import KeyValues, MultiHead
from tiebreak.layers.spec_augment import SpecAugment

BLOCKS, HEADS, TAPS = 2, 2, 3
SLOWEST = 3000.0  # frames: the longest wave of the positions, over 2 pi


class Encoder(nn.Module):
    """Features [B, frames, mels] to memory [B, S, w], and which of it is sound [B, S], where `frames` says so."""

    def __init__(self, mels: int, width: int, strides: int = 1, kind: str = "softmax", augment: int = 0) -> None:
        super().__init__()
        self.augment = SpecAugment(augment) if augment else None
        self.first = nn.Conv1d(mels, width, TAPS, padding=1, stride=strides)
        self.second = nn.Conv1d(width, width, TAPS, padding=1, stride=2)
        self.blocks = nn.ModuleList(Block(width, kind) for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(width)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The memory for the decoder's cross-attention."""
        features = features if self.augment is None else self.augment(features, frames)
        x, real = features.to(self.first.weight.dtype), None
        for conv in (self.first, self.second):
            if frames is not None:
                x = x.masked_fill(~_sound(x, frames)[..., None], 0.0)
                frames = (frames + conv.stride[0] - 1) // conv.stride[0]
            x = F.gelu(convolve(x, conv))
        x = x + sinusoids(x.shape[-2], x.shape[-1], x)
        if frames is not None:
            real = _sound(x, frames)
        for block in self.blocks:
            x = block(x, real=real)
        return self.norm(x), real


class Block(nn.Module):
    """x + A(N x) and x + M(N x), where A is attention to x itself or to a memory."""

    def __init__(self, width: int, kind: str = "softmax") -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), MultiHead(width, HEADS, kind=kind, bias="not-keys")
        self.norm_hidden = nn.LayerNorm(width)
        self.hidden, self.output = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, memory: KeyValues | None = None, *, real: Tensor | None = None) -> Tensor:
        """x [B, L, w] to the same shape; `real` says which keys are not padding."""
        queries = self.norm(x)
        memory = self.attention.project_memory(queries) if memory is None else memory
        x = x + self.attention.attend_to(queries, memory, real=real)
        return x + self.output(F.gelu(self.hidden(self.norm_hidden(x))))  # type: ignore[no-any-return]

    def weights(self, x: Tensor, memory: KeyValues, *, real: Tensor | None = None) -> Tensor:
        """The attention weights of each query over the keys, the mean over heads: [B, L, S]."""
        layer = self.attention
        queries = layer._split(layer.query(self.norm(x)))
        scores = queries @ memory.keys.mT * queries.shape[-1] ** -0.5
        if real is not None:
            scores = scores.masked_fill(~real[:, None, None], -torch.inf)
        if layer.kind == "taylor":
            terms = (1 + scores + scores.square() / 2).masked_fill(scores == -torch.inf, 0.0)
            weights: Tensor = terms / terms.sum(dim=-1, keepdim=True)
        else:
            weights = scores.softmax(dim=-1)
        return weights.mean(dim=1)


def convolve(x: Tensor, conv: nn.Conv1d) -> Tensor:
    """The convolution of x [B, L, C] over its second axis, as one product: that vmaps over runs as a batched product.

    A grouped convolution, which vmap would make of `conv` itself, is slow on a CPU.
    """
    taps, stride = conv.kernel_size[0], conv.stride[0]
    padded = F.pad(x, (0, 0, 1, 1))
    count = (x.shape[-2] - 1) // stride + 1
    windows = torch.cat([padded[..., tap : tap + stride * (count - 1) + 1 : stride, :] for tap in range(taps)], dim=-1)
    return F.linear(windows, conv.weight.transpose(-1, -2).flatten(-2), conv.bias)


def sinusoids(length: int, width: int, like: Tensor) -> Tensor:
    """Positions [length, width]: sines in the first half, cosines in the second, waves from 2 pi to 2 pi `SLOWEST`."""
    half = width // 2
    places = torch.arange(length, dtype=like.dtype, device=like.device)
    speeds = torch.arange(half, dtype=like.dtype, device=like.device) * (-math.log(SLOWEST) / max(half - 1, 1))
    angles = places[:, None] * speeds.exp()
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def _sound(x: Tensor, frames: Tensor) -> Tensor:
    """Which places of x [B, L, w] are sound: the first `frames` [B] of each row."""
    return torch.arange(x.shape[-2], device=x.device) < frames[:, None]

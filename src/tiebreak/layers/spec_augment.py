"""SpecAugment: in training, some stretches of time and some of mel bands of every clip are set to zero.

    width = floor(u (min(limit, length / 2) + 1)),  start = floor(v (length - width + 1)),  [start, start + width) -> 0

length is that of the clip without its padding, or the number of bands; u and v are numbers in [0, 1), hashed from (run
key, step, layer, row) as in `dropout`. So a clip gets the same mask alone, under vmap and after a resume, where other
libraries draw from a generator. Time is not warped.
Source: Park et al., "SpecAugment" (2019).
"""

from __future__ import annotations

import torch
from torch import Tensor

from tiebreak.layers.dropout import Keyed, hashed

FRAMES, BANDS = 40, 15  # the widest stretches of each kind


class SpecAugment(Keyed):
    """The layer, with `stretches` of time and as many of bands."""

    def __init__(self, stretches: int) -> None:
        super().__init__()
        self.stretches = stretches

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """features [B, L, M], masked in training mode; `frames` [B]: how many of each row are sound."""
        if not self.training:
            return features
        return spec_augment(features, uniforms(self.next_key(), len(features), self.stretches), frames)


def uniforms(key: Tensor, rows: int, stretches: int) -> Tensor:
    """Numbers in [0, 1) for width and start: [rows, time or bands, stretches, 2]."""
    bits = hashed(rows * stretches * 4, key)
    return ((bits >> 8) & 0xFFFFFF).to(torch.float32).mul(2.0**-24).view(rows, 2, stretches, 2)


def spec_augment(features: Tensor, drawn: Tensor, frames: Tensor | None = None) -> Tensor:
    """features [B, L, M] with zeros in the stretches that `drawn`, numbers of `uniforms`, stand for."""
    rows, length, bands = features.shape
    lengths = features.new_full((rows,), length, dtype=torch.long) if frames is None else frames
    times = _inside(drawn[:, 0], lengths, length, FRAMES)
    bars = _inside(drawn[:, 1], torch.full_like(lengths, bands), bands, BANDS)
    return features.masked_fill(times[:, :, None] | bars[:, None, :], 0.0)


def spec_augment_naive(features: Tensor, drawn: Tensor, frames: Tensor | None = None) -> Tensor:
    """The formula as it stands, one stretch at a time: the reference."""
    masked = features.clone()
    for row, (times, bars) in enumerate(drawn):
        length = features.shape[1] if frames is None else int(frames[row])
        for u, v in times:
            start, width = _stretch(u, v, length, FRAMES)
            masked[row, start : start + width] = 0.0
        for u, v in bars:
            start, width = _stretch(u, v, features.shape[2], BANDS)
            masked[row, :, start : start + width] = 0.0
    return masked


def _stretch(u: Tensor, v: Tensor, length: int, limit: int) -> tuple[int, int]:
    width = int(u * (min(limit, length // 2) + 1))
    return int(v * (length - width + 1)), width


def _inside(drawn: Tensor, lengths: Tensor, size: int, limit: int) -> Tensor:
    """Which places [B, size] lie in a stretch."""
    width = _below(drawn[..., 0], (lengths // 2).clamp(max=limit)[:, None] + 1)
    start = _below(drawn[..., 1], lengths[:, None] - width + 1)
    place = torch.arange(size, device=drawn.device)
    return ((place >= start[..., None]) & (place < (start + width)[..., None])).any(dim=1)


def _below(drawn: Tensor, count: Tensor) -> Tensor:
    """An integer from 0 to count - 1. The product may round up to count."""
    return torch.minimum((drawn * count).long(), count - 1)

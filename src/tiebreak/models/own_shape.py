"""The shape of networks of a user's own task: whatever its loss calls them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Tensors:
    """Shape of a network of the user's own task: the tensors [B, ...] that its loss calls the network with.

    `signature` is a text, since a plan holds it: `float32 3x32x32, int64 20`. `sizes` are those of the tensors without
    the axis of the batch: ((3, 32, 32), (20,)).
    """

    signature: str

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """The sizes of each tensor for one example."""
        return tuple(size for _, size in self._tensors())

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs: zeros; ones of whole numbers, which may be lengths; True and False in turns, as in a mask."""
        return tuple(_example(size, dtype).expand(batch, *size).clone() for dtype, size in self._tensors())

    def output(self, batch: int) -> tuple[int, ...]:
        """Not known: the loss and the metrics know what to do with it."""
        return ()

    def _tensors(self) -> list[tuple[torch.dtype, tuple[int, ...]]]:
        parts = (part.split(" ") for part in self.signature.split(", "))
        return [(getattr(torch, kind), tuple(map(int, filter(None, size.split("x"))))) for kind, size in parts]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Tensors:
        """The shape of networks that are called with these."""
        kinds = (str(each.dtype).removeprefix("torch.") for each in tensors)
        sizes = ("x".join(map(str, each.shape[1:])) for each in tensors)
        return cls(signature=", ".join(f"{kind} {size}" for kind, size in zip(kinds, sizes, strict=True)))


def _example(size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if dtype == torch.bool:
        return (torch.arange(prod(size)) % 2 == 0).view(size)
    return torch.full(size, not dtype.is_floating_point, dtype=dtype)

"""Launches of Triton kernels without Triton's search for the compiled one, which takes 50 microseconds a launch.

Triton compiles anew for other constants, types, alignments of pointers (16 bytes) and numbers that are 1 or multiples
of 16. Here the first launch goes through Triton; later ones with the same constants, numbers, types and alignments take
the kernel that it returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

MOST = 4096  # launches remembered: one per kernel and shape
_compiled: dict[tuple[object, ...], Any] = {}


class Constants:
    """What a kernel is compiled for, in the order of its parameters, and how. Make it once: it is known by identity."""

    __slots__ = ("named", "options", "values")

    def __init__(self, named: Mapping[str, object], options: Mapping[str, int]) -> None:
        self.named, self.options, self.values = dict(named), dict(options), tuple(named.values())


def described(rows: int, may: Tensor | None, *given: tuple[Tensor, int]) -> tuple[tuple[Any, ...], bool]:
    """Tensors [B, H, L, .] as descriptors of tiles of so many rows (0: of none) and columns, where that can be.

    Masked rows are hidden in registers, and the hardware wants multiples of 16 bytes.
    """
    tensors = tuple(each for each, _ in given)
    if not rows or may is not None or not all(map(_copyable, tensors)):
        return tensors, False
    from triton.tools.tensor_descriptor import TensorDescriptor

    return tuple(
        TensorDescriptor(each, list(each.shape), list(each.stride()), [1, 1, rows, width]) for each, width in given
    ), True


def _copyable(x: Tensor) -> bool:
    steps = [step * x.dtype.itemsize for step in x.stride()[:3]]
    return x.data_ptr() % 16 == 0 and x.stride(3) == 1 and all(step > 0 and step % 16 == 0 for step in steps)


def launch(
    kernel: Any, grid: tuple[int, int], tensors: tuple[Any, ...], numbers: tuple[float, ...], constants: Constants
) -> None:
    """`kernel[grid](*tensors, *numbers, **constants)`; constants must be in the order of the kernel's parameters."""
    kinds = [(each.dtype, each.data_ptr() % 16 == 0) for each in tensors if isinstance(each, Tensor)]
    key = (constants, numbers, tensors[-1].device, *kinds)
    compiled = _compiled.get(key)
    if compiled is not None:
        compiled[grid[0], grid[1], 1](*tensors, *numbers, *constants.values)
        return
    compiled = kernel[grid](*tensors, *numbers, **constants.named, **constants.options)
    if compiled is not None:  # Triton's interpreter returns nothing
        if len(_compiled) >= MOST:
            _compiled.clear()
        _compiled[key] = compiled

"""Compiles Triton kernels for an H200 where there is none: launches compile, and nothing runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

PACKED = re.compile(r"\b(?:add|sub)\.[su]16x2\b")  # two integers of 16 bits in a register


class _H200:
    """What Triton asks of a driver when it compiles."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


@contextmanager
def compiling() -> Iterator[list[tuple[str, str]]]:
    """A list that gets the name and the PTX of every kernel that is launched inside, on tensors of the CPU.

    For a process of its own: Triton has no driver to return to.
    """
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    found: list[tuple[str, str]] = []
    run = JITFunction.run

    def compiled(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        found.append((self.__name__, kernel.asm["ptx"]))
        return kernel

    JITFunction.run = compiled
    driver.set_active(_H200())
    yield found


def packed(found: list[tuple[str, str]]) -> list[str]:
    """The kernels that add packed integers."""
    return sorted({name for name, ptx in found if PACKED.search(ptx)})

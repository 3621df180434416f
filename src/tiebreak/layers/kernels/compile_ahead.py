"""Compiles the Triton kernels of a step at the same time, before they are launched.

A kernel is compiled when it is first launched, and a network has a kernel for each size of its layers: one after the
other, those of a residual network take longer than everything else before its first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import triton
from triton.runtime.jit import JITFunction

from tiebreak.system import cores


@contextmanager
def only_compiled() -> Iterator[None]:
    """Inside, launches compile and do not run: what they would write stays as it was. At the end all are compiled.

    Where one does not compile, its launch will say why.
    """
    launch = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        launch(self, *args, grid=grid, warmup=True, **options)

    with ThreadPoolExecutor(cores()) as pool, triton.AsyncCompileMode(pool, ignore_errors=True):
        JITFunction.run = run
        try:
            yield
        finally:
            JITFunction.run = launch

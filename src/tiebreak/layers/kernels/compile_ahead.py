"""Compiles the Triton kernels of a step at the same time, before they are launched.

A kernel is compiled when it is first launched, and a network has a kernel for each size of its layers: one after the
other, those of a residual network take longer than everything else before its first step. Most of the compiler does
not hold Python's lock, so that the step can be traced meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import torch
import triton
from triton.runtime.jit import JITFunction

from tiebreak.system import cores


class _Loading(ThreadPoolExecutor):
    """Threads that compile kernels, and load each onto the GPU: for a launcher, Triton calls a C compiler too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(_loaded, fn, *args, **kwargs)


def _loaded(compile_kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    kernel = compile_kernel(*args, **kwargs)
    with suppress(Exception):  # its launch will say why
        _ = kernel.run
    return kernel


@contextmanager
def only_compiled(*calls: Callable[[], object]) -> Iterator[None]:
    """Make the calls, in which launches compile and do not run: what they would write stays as it was.

    Compiling goes on inside the context, and at its end all kernels are compiled. Where one does not compile, its
    launch will say why.
    """
    launch = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        launch(self, *args, grid=grid, warmup=True, **options)

    threads = _Loading(cores(), initializer=_use_device, initargs=_device())
    with threads, triton.AsyncCompileMode(threads, ignore_errors=True):
        JITFunction.run = run
        try:
            for call in calls:
                call()
        finally:
            JITFunction.run = launch
        yield


def _device() -> tuple[int, ...]:
    """The GPU of this thread, if there is one: other threads start with the first."""
    return (torch.cuda.current_device(),) if torch.cuda.is_available() else ()


def _use_device(*index: int) -> None:
    for each in index:
        torch.cuda.set_device(each)

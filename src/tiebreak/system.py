"""What depends on the machine and the interpreter: cores, memory, how our processes are started, the collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


def cores() -> int:
    """The number of CPU cores that this process may use."""
    process = psutil.Process()
    if hasattr(process, "cpu_affinity"):  # not on macOS
        return len(process.cpu_affinity() or ()) or 1
    return psutil.cpu_count() or 1


def free_memory() -> int:
    """Bytes of memory that can be used without swapping."""
    return int(psutil.virtual_memory().available)


def total_memory() -> int:
    """Bytes of memory that the machine has."""
    return int(psutil.virtual_memory().total)


def python(module: str) -> list[str]:
    """The command that runs one of our modules. A file in the current folder cannot take the place of a library.

    `python -m` alone looks there first, and a folder of experiments may hold a `torch` or a `random.py`.
    """
    from_source = Path.cwd() == Path(__file__).resolve().parent.parent  # found there, and perhaps nowhere else
    return [sys.executable, *([] if from_source else ["-P"]), "-m", module]


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for reference cycles for a while.

    Reading thousands of records allocates many objects, none of them in cycles; the searches took half of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

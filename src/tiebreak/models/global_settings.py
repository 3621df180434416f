"""Torch's global settings, which belong to all designs of a process: a user's design may not change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tiebreak.errors import TiebreakError

Setting = tuple[Callable[[], Any], Callable[[Any], Any]]  # how it is read and set


def _attribute(owner: Any, name: str) -> Setting:
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


SETTINGS: dict[str, Setting] = {
    "set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "set_default_device": (torch.get_default_device, torch.set_default_device),
    "set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    "set_float32_matmul_precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
    "use_deterministic_algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "backends.cudnn.allow_tf32": _attribute(torch.backends.cudnn, "allow_tf32"),
    "backends.cudnn.benchmark": _attribute(torch.backends.cudnn, "benchmark"),
    "backends.cudnn.deterministic": _attribute(torch.backends.cudnn, "deterministic"),
}


@contextmanager
def unchanged_settings() -> Iterator[None]:
    """Refuse code that changes a setting, and undo the change: whether other designs had it would depend on company."""
    before = {name: read() for name, (read, _) in SETTINGS.items()}
    try:
        yield
    finally:
        changed = [name for name, (read, _) in SETTINGS.items() if read() != before[name]]
        for name in changed:
            SETTINGS[name][1](before[name])
    if changed:
        raise TiebreakError(
            f"changes a global setting (torch.{changed[0]}), and so the numbers of all designs; leave that out (for"
            " TF32: --precision tf32; for a type of numbers: dtype= where a tensor is made)"
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """As many threads as a worker has. More of them make a forward pass of two examples slower, not faster."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

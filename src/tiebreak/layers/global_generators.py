"""The global random generators of torch, NumPy and Python: nothing that trains may draw from them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def seeded(key: int) -> Iterator[None]:
    """All global generators of the CPU start from `key` inside; afterwards they are as they were before."""
    legacy, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(key)
        np.random.seed([key & 0xFFFFFFFF, key >> 32])  # noqa: NPY002
        random.seed(key)
        try:
            yield
        finally:
            np.random.set_state(legacy)  # noqa: NPY002
            random.setstate(python)


def generator_states() -> dict[str, Any]:
    """The states of the global generators by whose they are, as values that can be compared.

    Also where a network calls a layer inside a transform of `torch.func`, which would wrap the state of torch's.
    """
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002
    assert isinstance(legacy, dict)
    states: dict[str, Any] = {
        "NumPy": (legacy["state"]["key"].tobytes(), legacy["state"]["pos"], legacy["has_gauss"]),
        "Python": random.getstate(),
    }
    with torch._C._DisableFuncTorch():
        states["torch"] = torch.default_generator.get_state().numpy().tobytes()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            states["torch on the GPU"] = b"".join(each.numpy().tobytes() for each in torch.cuda.get_rng_state_all())
    return states


def drawn_from(before: dict[str, Any]) -> str:
    """The generator that was drawn from since `before`, states of `generator_states`; empty: none."""
    return next((name for name, state in generator_states().items() if before.get(name, state) != state), "")

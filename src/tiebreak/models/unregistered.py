"""What a network's layers hold besides registered parameters and buffers: numbers, arrays, and lists of them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

CLOSE = 1e-6  # two results of the same call, relative to the largest number: parallel sums may round differently
OWN = frozenset(vars(nn.Module()))  # attributes of every module
DEPTH = 4  # of lists within lists


def unregistered(network: nn.Module) -> dict[str, Any]:
    """Numbers, texts and arrays in the attributes of a user's layers, by their full names. Arrays are copied."""
    return {
        name: value
        for layer_name, layer in network.named_modules()
        if not type(layer).__module__.startswith("tiebreak.")
        for attribute, held in vars(layer).items()
        if attribute not in OWN
        for name, value in _leaves(f"{layer_name}.{attribute}" if layer_name else attribute, held, DEPTH)
    }


def _leaves(name: str, held: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(held, Tensor):
        yield name, held.detach().clone()
    elif isinstance(held, np.ndarray):
        yield name, held.copy()
    elif isinstance(held, torch.Generator):
        yield name, held.get_state()
    elif held is None or isinstance(held, bool | int | float | complex | str):
        yield name, held
    elif isinstance(held, itertools.count | set | range):
        yield name, repr(held)
    elif depth and isinstance(held, list | tuple | dict | deque):
        for key, each in held.items() if isinstance(held, dict) else enumerate(held):
            yield from _leaves(f"{name}[{key!r}]", each, depth - 1)
    elif (
        depth
        and hasattr(held, "__dict__")
        and not isinstance(held, type | ModuleType | nn.Module)
        and not callable(held)
    ):
        for key, each in vars(held).items():
            yield from _leaves(f"{name}.{key}", each, depth - 1)


def changed_attribute(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The first attribute that has another value; empty: none."""
    names = {**before, **after}
    return next((name for name in names if name not in before or not same(before[name], after.get(name))), "")


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, but for rounding; NaN is NaN."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if not (one.is_floating_point() or one.is_complex()) or one.numel() == 0:
            return torch.equal(one, other)
        largest = float(one.detach().abs().nan_to_num(0.0, 0.0, 0.0).max())
        return torch.allclose(one.detach(), other.detach(), rtol=0.0, atol=CLOSE * largest, equal_nan=True)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return type(one) is type(other) and (one == other or repr(one) == repr(other))  # NaN is not equal to itself

"""Arrays as bytes: for the store's rows and for the messages between processes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def pack(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the bytes of an npz file."""
    buffer = io.BytesIO()
    given: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **given)
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, Any]:
    """The arrays of `pack`; no pickle is ever loaded."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}

"""Arrays as bytes: for the store's rows and for the messages between processes."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import PlainSerializer, PlainValidator


def pack(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the bytes of an npz file."""
    buffer = io.BytesIO()
    given: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **given)
    return buffer.getvalue()


class PackedArrays(Mapping[str, npt.NDArray[Any]]):
    """The arrays of `pack`, unpacked when one of them is looked up: most readers need those of a few runs only."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @cached_property
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return unpack(self.content)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def fingerprint(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """The sha256 of the arrays as `pack` writes them."""
    content = arrays.content if isinstance(arrays, PackedArrays) else pack(arrays)
    return hashlib.sha256(content).hexdigest()


def unpack(content: bytes) -> dict[str, Any]:
    """The arrays of `pack`; no pickle is ever loaded."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _to_text(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    return base64.b64encode(pack(arrays)).decode()


def _from_text(value: Any) -> Any:
    return unpack(base64.b64decode(value)) if isinstance(value, str) else value


# Arrays by name. In a message they are the base64 text of `pack`.
Arrays = Annotated[Mapping[str, npt.NDArray[Any]], PlainValidator(_from_text), PlainSerializer(_to_text)]

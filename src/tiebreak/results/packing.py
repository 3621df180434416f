"""Arrays as bytes: for the store's rows and for the messages between processes.

Unpacking believes nothing: no pickle is loaded, and what a header claims must be there.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import IO, Annotated, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy
from pydantic import PlainSerializer, PlainValidator

LIMIT_BYTES = 256 << 20  # of the arrays of one row or message
KINDS = "biufU"  # of numbers and text


def pack(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the bytes of an npz file; of packed ones, those that they came from."""
    if isinstance(arrays, PackedArrays):
        return arrays.content
    buffer = io.BytesIO()
    given: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **given)
    return buffer.getvalue()


class PackedArrays(Mapping[str, npt.NDArray[Any]]):
    """The arrays of `pack`, unpacked when one of them is looked up: most readers need those of a few runs only.

    `unpack` may raise any exception: it reaches the first who looks.
    """

    def __init__(self, content: bytes, unpack: Callable[[bytes], Mapping[str, npt.NDArray[Any]]]) -> None:
        self.content = content
        self._unpack = unpack

    @cached_property
    def _arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._unpack(self.content)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def fingerprint(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """The sha256 of the arrays as `pack` writes them."""
    return hashlib.sha256(pack(arrays)).hexdigest()


def unpack(content: bytes, limit: int = LIMIT_BYTES) -> dict[str, Any]:
    """The arrays of `pack`, at most `limit` bytes of them. Anything else is a ValueError."""
    if not isinstance(content, bytes):
        raise ValueError(f"{type(content).__name__} in the place of arrays")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if (total := sum(entry.file_size for entry in entries)) > limit:
                raise ValueError(f"{total:,} bytes of arrays; at most {limit:,} are read")
            found = {entry.filename.removesuffix(".npy"): _read(archive, entry) for entry in entries}
    except ValueError:
        raise
    except Exception as error:  # zipfile, zlib, ast and numpy raise a dozen kinds on bytes that make no sense
        raise ValueError(f"damaged arrays ({type(error).__name__})") from None
    if len(found) < len(entries):
        raise ValueError("two arrays of one name")
    return found


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(entry) as file:
        shape, fortran, dtype = _header(file)
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind not in KINDS or dtype.hasobject:
            raise ValueError(f"an array of {dtype}: only numbers and text are read, no pickle")
        if min(shape, default=0) < 0 or size != entry.file_size - file.tell():
            raise ValueError(f"an array claims {size:,} bytes and has {entry.file_size - file.tell():,}")
        data = bytearray(file.read())  # checks the sum of the entry, too
    if len(data) != size:
        raise ValueError(f"an array claims {size:,} bytes and has {len(data):,}")
    return np.ndarray(shape, dtype, buffer=data, order="F" if fortran else "C")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    if npy.read_magic(file) == (1, 0):
        return npy.read_array_header_1_0(file)
    return npy.read_array_header_2_0(file)


def _to_text(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    return base64.b64encode(pack(arrays)).decode()


def _from_text(value: Any) -> Any:
    if isinstance(value, Mapping) and all(isinstance(array, np.ndarray) for array in value.values()):
        return value
    if not isinstance(value, str):
        raise ValueError("should be arrays")
    content = base64.b64decode(value)
    arrays = unpack(content)  # checked here, and stored as it came: packing again would take the driver a millisecond
    return PackedArrays(content, lambda _: arrays)


# Arrays by name. In a message they are the base64 text of `pack`.
Arrays = Annotated[Mapping[str, npt.NDArray[Any]], PlainValidator(_from_text), PlainSerializer(_to_text)]

"""Reading untrusted npz files: zip directory and npy headers are checked before any array is read.

An npz file is a zip archive of `KEY.npy` entries. Nothing in it is ever unpickled, and no memory is allocated
because of a claim of the file alone: an array's header, its entry in the directory and the bytes that are there must
agree.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError
from tiebreak.files import check_regular
from tiebreak.text import printable

LIMIT_BYTES = 8 << 30  # of all arrays that are read from one file
EXPANDED_BYTES = 512 << 20  # of arrays that take more than EXPANSION times the space of their file: a bomb otherwise
EXPANSION = 50  # images and features take 2 to 20 times the space of their file
CHUNK_BYTES = 1 << 20
MOST_NAMED = 8  # arrays in a message
DEFLATE_RATIO = 1032  # the most that a deflated byte can stand for
KINDS = {"b": "true or false", "i": "integers", "u": "unsigned integers", "f": "floating point", "U": "text"}
HEADERS: Mapping[tuple[int, int], Callable[[IO[bytes]], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """What an array must be: one of these numbers of dimensions, one of these kinds of dtype (letters of `KINDS`)."""

    ndim: tuple[int, ...]
    kinds: str


@dataclass(frozen=True, kw_only=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    claimed: int  # bytes of data, by shape and dtype


def array_names(path: Path) -> tuple[str, ...]:
    """The keys of an npz file."""
    with _archive(path) as archive:
        return tuple(_entries(path, archive))


def read_npz(path: Path, expected: Mapping[str, ArraySpec], limit: int = LIMIT_BYTES) -> dict[str, NDArray[Any]]:
    """The expected arrays of an npz file, each checked against its spec before it is read; others are ignored."""
    with _archive(path) as archive:
        entries = _entries(path, archive)
        for key in expected:
            if key not in entries:
                found = ", ".join(map(printable, sorted(entries)[:MOST_NAMED])) or "none"
                raise TiebreakError(f"{path}: no array {key!r}; expected {', '.join(expected)}; found {found}")
        if (total := sum(entries[key].file_size for key in expected)) > limit:
            raise TiebreakError(f"{path}: claims {total:,} bytes of arrays; at most {limit:,} are read")
        for key in expected:
            _check_entry(path, key, entries[key])
        check_expansion(path, total, path.stat().st_size)
        return {key: _read(path, key, archive, entries[key], spec) for key, spec in expected.items()}


def check_expansion(path: Path, unpacked: int, stored: int, limit: int = EXPANDED_BYTES) -> None:
    """Raise where a small file would become very large in memory."""
    if unpacked > max(limit, EXPANSION * stored):
        raise TiebreakError(
            f"{printable(path)}: {stored:,} bytes that unpack to {unpacked:,}: hardly data; at most {limit:,} are read "
            f"from files that unpack to more than {EXPANSION} times their size"
        )


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    check_regular(path)
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise TiebreakError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception:  # BadZipFile, and a few others on a damaged directory
        with path.open("rb") as file:
            zipped = file.read(2) == b"PK"
        if zipped:
            raise TiebreakError(f"{path}: truncated or damaged: it has no zip directory; get it again") from None
        raise TiebreakError(f"{path}: not an npz file; expected arrays that numpy.savez wrote, or a folder") from None
    with archive:
        yield archive


def _entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in entries:
            raise TiebreakError(f"{path}: two arrays are called {key!r}")
        entries[key] = info
    return entries


def _check_entry(path: Path, key: str, info: zipfile.ZipInfo) -> None:
    """The sizes that the directory claims must be possible."""
    most = info.compress_size * (DEFLATE_RATIO if info.compress_type == zipfile.ZIP_DEFLATED else 1)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise TiebreakError(f"{path}: {key}: packed in a way that npz files do not use")
    if info.compress_size > path.stat().st_size or info.file_size > most:
        raise TiebreakError(f"{path}: {key}: claims {info.file_size:,} bytes, more than the file can hold")


def _read(path: Path, key: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, spec: ArraySpec) -> NDArray[Any]:
    try:
        with archive.open(info) as file:
            header = _header(file)
            problem = _problem(header, info.file_size - file.tell(), spec)
            data = bytearray(0 if problem else header.claimed)
            filled = _fill(file, data)
    except Exception as error:  # zlib, zipfile, ast and tokenize raise a dozen kinds on bytes that make no sense
        raise TiebreakError(f"{path}: {key}: damaged ({_one_line(error)}); get the file again") from None
    if problem:
        raise TiebreakError(f"{path}: {key}: {problem}")
    if filled != header.claimed:
        raise TiebreakError(f"{path}: {key}: ends after {filled:,} of {header.claimed:,} bytes; get the file again")
    array = np.ndarray(header.shape, header.dtype, buffer=data, order="F" if header.fortran else "C")
    return np.asarray(array, dtype=header.dtype.newbyteorder("="), order="C")  # a copy only where it must be one


def _fill(file: IO[bytes], data: bytearray) -> int:
    """Read into the buffer piece by piece, so that nothing is in memory twice. The number of bytes read."""
    filled = 0
    while piece := file.read(min(CHUNK_BYTES, len(data) - filled)):
        data[filled : filled + len(piece)] = piece
        filled += len(piece)
    return filled


def _header(file: IO[bytes]) -> _Header:
    version = npy.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"version {version} of the npy format")
    shape, fortran, dtype = HEADERS[version](file)
    return _Header(shape=shape, fortran=fortran, dtype=dtype, claimed=math.prod(shape) * dtype.itemsize)


def _problem(header: _Header, present: int, spec: ArraySpec) -> str | None:
    """What is wrong with an array, by its header and the number of bytes that follow it."""
    if header.dtype.hasobject:
        return "holds pickled objects, which are never read; save it as a plain array"
    if header.dtype.kind not in spec.kinds:
        return f"is {header.dtype}; expected {' or '.join(KINDS[kind] for kind in spec.kinds)}"
    if len(header.shape) not in spec.ndim:
        return f"has shape {header.shape}; expected {' or '.join(map(str, spec.ndim))} dimensions"
    if min(header.shape, default=0) < 0 or header.claimed != present:
        return f"claims shape {header.shape}, {header.claimed:,} bytes, and has {present:,}"
    return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__

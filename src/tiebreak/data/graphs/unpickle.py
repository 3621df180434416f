"""Arrays and sparse matrices from untrusted pickles.

A pickle is a program, and unpickling runs it. Three checks make that safe:

1. The file is small, and its operations are read without being run (pickle_scan.py): only those that build numbers,
   text, lists, tuples and dictionaries, and that name one of `NAMES`, are accepted, and not too many of them.
2. What it names is never imported. Instead of the constructors of numpy, scipy and collections it gets classes made
   for this one file, which record how they were called and do nothing else.
3. What was recorded is checked, and only then becomes an array: the `__setstate__` of numpy and scipy, which trust
   every claim about memory, are not called either.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.graphs.graph_parts import Matrix, sparse_rows
from tiebreak.data.graphs.pickle_scan import scan
from tiebreak.errors import TiebreakError
from tiebreak.files import read_bytes
from tiebreak.text import printable

LIMIT_BYTES = 64 << 20  # of one file; Cora's largest has a quarter of a megabyte
LIMIT_SIDE = 1 << 31  # of an array
ARRAY, DTYPE, MATRIX, LISTS, OTHER = "array", "dtype", "matrix", "lists", "other"
NAMES: Mapping[str, str] = {  # what a file may name, by the versions of Python, numpy and scipy that wrote it
    "numpy.core.multiarray _reconstruct": ARRAY,
    "numpy._core.multiarray _reconstruct": ARRAY,
    "numpy ndarray": OTHER,
    "numpy dtype": DTYPE,
    "scipy.sparse.csr csr_matrix": MATRIX,
    "scipy.sparse._csr csr_matrix": MATRIX,
    "collections defaultdict": LISTS,
    "__builtin__ list": OTHER,
    "builtins list": OTHER,
}
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")


class _Written(dict[Any, Any]):
    """Something as the file describes it: how it was made, its state, and its items. Nothing of it is believed yet."""

    kind = OTHER
    state: Any = None

    def __new__(cls, *arguments: object) -> _Written:
        written = super().__new__(cls)
        written.arguments = arguments
        return written

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Fenced(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[_Written]:
        """A new class for every name of every file, so that no file can leave anything behind."""
        return type(name, (_Written,), {"kind": NAMES[f"{module} {name}"]})


def read_array(path: Path) -> NDArray[Any]:
    """The numpy array in a file."""
    return _array(printable(path), _read(path))


def read_matrix(path: Path) -> Matrix:
    """The scipy matrix in compressed rows in a file."""
    where, written = printable(path), _read(path)
    state = _made(where, written, MATRIX).state
    if not isinstance(state, dict) or not {"data", "indices", "indptr", "_shape"} <= state.keys():
        raise TiebreakError(f"{where}: the sparse matrix in it lacks data, indices, indptr or a shape")
    data, indices, indptr = (_array(where, state[key], ndim=1) for key in ("data", "indices", "indptr"))
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise TiebreakError(f"{where}: the sparse matrix in it has places that are not integers")
    return sparse_rows(where, data, indices, indptr, _shape(where, state["_shape"]))


def read_lists(path: Path) -> dict[int, list[int]]:
    """The dictionary of lists of whole numbers in a file: the neighbours of each node."""
    where, written = printable(path), _read(path)
    lists = written if type(written) is dict else _made(where, written, LISTS)
    for key, values in lists.items():
        if type(key) is not int or type(values) is not list or not all(type(value) is int for value in values):
            raise TiebreakError(f"{where}: not a dictionary of lists of nodes, at {str(key)[:40]!r}")
    return dict(lists)


def _read(path: Path, limit: int = LIMIT_BYTES) -> object:
    where = printable(path)
    content = read_bytes(path, limit)
    try:
        scan(where, content, NAMES)
        return _Fenced(io.BytesIO(content), encoding="latin1").load()
    except TiebreakError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise TiebreakError(f"{where}: not a whole pickle ({reason}); get the file again") from None


def _made(where: str, written: object, kind: str) -> _Written:
    if not isinstance(written, _Written) or written.kind != kind:
        raise TiebreakError(f"{where}: holds no {kind}")
    return written


def _shape(where: str, shape: object) -> tuple[int, ...]:
    sides = shape if isinstance(shape, tuple) and len(shape) <= 2 else (None,)
    if not all(type(side) is int and 0 <= side < LIMIT_SIDE for side in sides):
        raise TiebreakError(f"{where}: an array in it has no proper shape")
    return sides


def _array(where: str, written: object, ndim: int | None = None) -> NDArray[Any]:
    """The array that was written down, if its bytes are as many as its shape and type say."""
    state = _made(where, written, ARRAY).state
    if not isinstance(state, tuple) or len(state) != 5:
        raise TiebreakError(f"{where}: an array in it is incomplete")
    shape, dtype, raw = _shape(where, state[1]), _dtype(where, state[2]), state[4]
    if isinstance(raw, str):  # bytes of Python 2
        try:
            raw = raw.encode("latin1")
        except UnicodeEncodeError:
            raise TiebreakError(f"{where}: an array in it has text in the place of its bytes") from None
    if not isinstance(raw, bytes) or len(raw) != math.prod(shape) * dtype.itemsize:
        raise TiebreakError(f"{where}: an array in it claims shape {shape} of {dtype}, which its bytes do not fill")
    if ndim is not None and len(shape) != ndim:
        raise TiebreakError(f"{where}: an array in it has shape {shape}; expected {ndim} dimensions")
    array = np.frombuffer(raw, dtype).reshape(shape, order="F" if state[3] is True else "C")
    return array.astype(dtype.newbyteorder("="))


def _dtype(where: str, written: object) -> np.dtype[Any]:
    made = _made(where, written, DTYPE)
    name, order = made.arguments[:1], made.state[1:2] if isinstance(made.state, tuple) else ("=",)
    if len(name) != 1 or name[0] not in DTYPES or order not in (("<",), (">",), ("|",), ("=",)):
        raise TiebreakError(f"{where}: an array in it is not of plain numbers")
    return np.dtype(name[0]).newbyteorder(order[0])

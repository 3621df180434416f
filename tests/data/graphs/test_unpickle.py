"""Pickles read without running them, and what a malicious file gets for its trouble."""

from __future__ import annotations

import builtins
import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from tiebreak.data.graphs import unpickle
from tiebreak.data.graphs.unpickle import read_array, read_lists, read_matrix
from tiebreak.errors import TiebreakError

FEATURES = np.arange(27, dtype=np.float32).reshape(9, 3) % 4


def write(path: Path, value: object, protocol: int = 3) -> Path:
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def refusal(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(TiebreakError) as caught:
        read(path)
    line = str(caught.value)
    assert "\n" not in line
    return line


class Calls:
    """Pickled, it is a call of a function."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3), np.uint8),
        np.array([True, False]),
    ],
)
def test_arrays_come_back(tmp_path: Path, array: NDArray[Any]) -> None:
    read = read_array(write(tmp_path / "a", array))
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("function", [os.system, subprocess.call, builtins.eval, builtins.exec])
def test_a_malicious_file_runs_nothing(tmp_path: Path, protocol: int, function: Callable[..., object]) -> None:
    mark = tmp_path / "run"
    python = function in (builtins.eval, builtins.exec)
    command: object = f"__import__('pathlib').Path({str(mark)!r}).touch()" if python else f"touch {mark}"
    arguments = (["touch", str(mark)],) if function is subprocess.call else (command,)
    path = write(tmp_path / "x", Calls(function, *arguments), protocol)
    for read in (read_array, read_matrix, read_lists):
        refusal(read, path)
    assert not mark.exists()
    pickle.loads(path.read_bytes())  # the same file does run in an open unpickler: the test would notice
    assert mark.exists()


def test_a_malicious_file_inside_an_array(tmp_path: Path) -> None:
    mark = tmp_path / "run"
    content = np.array([Calls(os.system, f"touch {mark}")], dtype=object)
    assert "'posix.system'; only numpy and scipy arrays" in refusal(read_array, write(tmp_path / "x", content, 3))
    assert not mark.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cnumpy\nfromfile\n(Vx\ntR.",
        b"cnumpy.testing._private.utils\nrunstring\n(Vimport os\n}tR.",
        b"cnumpy\nload\n(Vx\ntR.",
        b"cscipy.sparse\nload_npz\n(Vx\ntR.",
        b"cbuiltins\ngetattr\n(cnumpy\nndarray\nVtofile\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.",
        b"(cos\nsystem\nVtrue\no.",
        b"(Vtrue\nios\nsystem\n.",
        b"Pname\n.",
        b"\x82\x01.",
    ],
)
def test_other_doors_are_closed_too(tmp_path: Path, program: bytes) -> None:
    (tmp_path / "x").write_bytes(program)
    for read in (read_array, read_matrix, read_lists):
        refusal(read, tmp_path / "x")


def test_a_file_leaves_nothing_behind_in_our_classes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x80\x02cnumpy\ndtype\nN}X\x05\x00\x00\x00stateK\x01s\x86b.")
    refusal(read_array, tmp_path / "x")
    assert unpickle._Written.kind == "other"
    assert unpickle._Written.state is None


def test_claims_about_memory_are_not_believed(tmp_path: Path) -> None:
    content = pickle.dumps(np.arange(3, dtype=np.int64), 3)
    assert b"K\x03\x85" in content
    (tmp_path / "x").write_bytes(content.replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"))
    assert "claims shape (2147483647,)" in refusal(read_array, tmp_path / "x")
    (tmp_path / "y").write_bytes(content.replace(b"i8", b"O8"))
    assert "not of plain numbers" in refusal(read_array, tmp_path / "y")
    (tmp_path / "z").write_bytes(b"\x80\x02Nr\xff\xff\xff\xff.")
    assert "more objects than it has bytes" in refusal(read_array, tmp_path / "z")


def test_too_large_missing_or_empty(tmp_path: Path) -> None:
    assert "No such file" in refusal(read_array, tmp_path / "none")
    (tmp_path / "x").touch()
    assert "not a whole pickle" in refusal(read_array, tmp_path / "x")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(unpickle.LIMIT_BYTES + 1)
    assert "limit" in refusal(read_array, tmp_path / "large")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
def test_damage_anywhere_is_refused_or_gives_a_matrix(tmp_path: Path, place: int, byte: int, cut: bool) -> None:
    content = bytearray(pickle.dumps(csr_matrix(FEATURES), 3))
    place %= len(content)
    content[place:] = b"" if cut else bytes([byte]) + content[place + 1 :]
    (tmp_path / "x").write_bytes(content)
    try:
        matrix = read_matrix(tmp_path / "x")
    except TiebreakError:
        return
    assert matrix.toarray().shape == matrix.shape

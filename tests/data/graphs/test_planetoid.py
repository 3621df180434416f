"""The pickles of Planetoid: read without running them, and what a malicious file gets for its trouble."""

from __future__ import annotations

import builtins
import os
import pickle
import subprocess
from collections import defaultdict
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
from tiebreak.data.graphs.graph_parts import clean
from tiebreak.data.graphs.planetoid import read_planetoid
from tiebreak.data.graphs.unpickle import read_array, read_lists, read_matrix
from tiebreak.errors import TiebreakError

FEATURES = np.arange(27, dtype=np.float32).reshape(9, 3) % 4
LABELS = np.array([0, 1, 0, 1, 0, 1, 0, 0, 1])
ORDER = [8, 6, 7]  # of the test nodes in tx
EDGES = [(0, 1), (1, 2), (2, 2), (3, 4), (4, 8), (5, 6), (6, 7)]


class Calls:
    """Pickled, it is a call of a function."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def write(path: Path, value: object, protocol: int = 3) -> Path:
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def planetoid(tmp_path: Path, **changes: Any) -> dict[str, Path]:
    """A graph of nine nodes: two for training, four more that are known, three for testing."""
    one_hot = np.eye(2, dtype=np.int32)[LABELS]
    neighbours: dict[int, list[int]] = defaultdict(list)
    for source, target in EDGES:
        neighbours[source].append(target)
        neighbours[target].append(source)
    contents: dict[str, Any] = {
        "x": csr_matrix(FEATURES[:2]),
        "y": one_hot[:2],
        "allx": csr_matrix(FEATURES[:6]),
        "ally": one_hot[:6],
        "tx": csr_matrix(FEATURES[ORDER]),
        "ty": one_hot[ORDER],
        "graph": neighbours,
    }
    files = {name: write(tmp_path / name, value) for name, value in (contents | changes).items() if name in contents}
    files["test.index"] = tmp_path / "test.index"
    files["test.index"].write_text(changes.get("index", "8\n6\n7\n"))
    return files


def refusal(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(TiebreakError) as caught:
        read(path)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_test_nodes_go_back_to_their_places(tmp_path: Path) -> None:
    parts = read_planetoid(planetoid(tmp_path), validation=3)
    np.testing.assert_array_equal(parts.features.toarray(), FEATURES)
    np.testing.assert_array_equal(parts.labels, LABELS)
    assert parts.splits is not None
    assert [parts.splits[split].tolist() for split in ("train", "val", "test")] == [[0, 1], [2, 3, 4], [6, 7, 8]]
    cleaned = clean("here", parts.edges, 9)
    assert [tuple(pair) for pair in cleaned.edges.tolist()] == [pair for pair in EDGES if pair[0] != pair[1]]
    assert cleaned.repeated == 0


def test_an_edge_that_only_one_end_knows_counts(tmp_path: Path) -> None:
    parts = read_planetoid(planetoid(tmp_path, graph={4: [1], 1: [2]}), validation=3)
    assert clean("here", parts.edges, 9).edges.tolist() == [[1, 2], [1, 4]]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"index": "8\n6\n"}, "expected the nodes 6 to 8"),
        ({"index": "8\n6\n6\n"}, "expected the nodes 6 to 8"),
        ({"index": "8\nsix\n7\n"}, "expected a whole number a line"),
        ({"y": np.ones((2, 2), np.int32)}, "not one-hot"),
        ({"y": np.eye(3, dtype=np.int32)}, "expected a row for each of 2 nodes"),
        ({"x": csr_matrix(np.ones((2, 5), np.float32))}, "different numbers of features"),
        ({"graph": {0: ["a"]}}, "not a dictionary of lists of nodes"),
        ({"graph": {0: [2**70]}}, "too large"),
        ({"graph": [1, 2]}, "holds no lists"),
        ({"tx": np.zeros(3)}, "holds no matrix"),
        ({"ty": csr_matrix(np.eye(3))}, "holds no array"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path: Path, changes: dict[str, Any], line: str) -> None:
    files = planetoid(tmp_path, **changes)
    assert line in refusal(lambda _: read_planetoid(files, validation=3), tmp_path)


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
    assert "cannot be read" in refusal(read_array, tmp_path / "none")
    (tmp_path / "x").touch()
    assert "not a whole pickle" in refusal(read_array, tmp_path / "x")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(unpickle.LIMIT_BYTES + 1)
    assert "is not read" in refusal(read_array, tmp_path / "large")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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

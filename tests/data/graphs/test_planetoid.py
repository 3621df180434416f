"""The pickles of Planetoid: read without running them, and what a malicious file gets for its trouble."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tiebreak.data.graphs.graph_parts import clean
from tiebreak.data.graphs.planetoid import read_planetoid
from tiebreak.errors import TiebreakError

FEATURES = np.arange(27, dtype=np.float32).reshape(9, 3) % 4
LABELS = np.array([0, 1, 0, 1, 0, 1, 0, 0, 1])
ORDER = [8, 6, 7]  # of the test nodes in tx
EDGES = [(0, 1), (1, 2), (2, 2), (3, 4), (4, 8), (5, 6), (6, 7)]


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

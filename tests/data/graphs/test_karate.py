"""The karate club of networkx, and the picture of it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.data.graphs.graph_data import checksum, load
from tiebreak.data.graphs.karate import FACTIONS, MEMBERS, make_karate, place

pytestmark = pytest.mark.usefixtures("empty_cache")

CHECKSUM = "877a1c81cc669490c871747cf4a4e3135bb75778b040abfe3cdd5ea7d4a6a681"
EDGES = "098a26d3e7bfe08aabfdde083acef5832d56f598ac2673081378a13eae199560"
VAL = [6, 9, 11, 12, 15, 17, 31, 32]
SPLITS = {"train": [0, 33], "val": VAL, "test": [node for node in range(1, 33) if node not in VAL]}


def test_the_karate_club() -> None:
    data = load("karate")
    assert (data.nodes, len(data.edges), data.sizes) == (34, 78, {"train": 2, "val": 8, "test": 24})
    assert data.degrees()[[0, 33, 32, 2, 1, 11]].tolist() == [16, 17, 12, 10, 9, 1]
    assert np.bincount(data.labels).tolist() == [17, 17]
    assert (data.labels[0], data.labels[33]) == (0, 1)
    assert data.notes == ()
    assert data.positions is not None
    assert np.abs(data.positions).max() == pytest.approx(1)
    distances = np.linalg.norm(data.positions[:, None] - data.positions[None], axis=2)
    assert distances[np.triu_indices(34, 1)].min() > 0.02  # no member hides another
    near, far = distances[tuple(data.edges.T)].mean(), distances[np.triu_indices(34, 1)].mean()
    assert near < 0.7 * far


def test_the_arrays_never_move() -> None:
    """Pinned before the edges came from networkx: another version must not change a study's numbers."""
    parts = make_karate()
    assert [str(array.dtype) for array in (parts.edges, parts.labels)] == ["int64", "int64"]
    assert parts.edges.tolist() == sorted(parts.edges.tolist())
    assert hashlib.sha256(parts.edges.astype("<i8").tobytes()).hexdigest() == EDGES
    assert np.flatnonzero(parts.labels == 0).tolist() == [*range(9), 10, 11, 12, 13, 16, 17, 19, 21]
    assert parts.splits is not None
    assert {split: nodes.tolist() for split, nodes in parts.splits.items()} == SPLITS
    np.testing.assert_array_equal(parts.features.toarray(), np.eye(MEMBERS))
    assert parts.class_names == FACTIONS
    assert checksum("karate") == CHECKSUM


@given(nodes=st.integers(3, 12), steps=st.integers(0, 60))
@settings(deadline=None, max_examples=20)
def test_every_step_of_the_placing_lowers_the_stress(nodes: int, steps: int) -> None:
    """Σ (|x_i - x_j| - d_ij)² at the best scale, on a path, where d_ij = |i - j|."""
    edges = np.array([(node, node + 1) for node in range(nodes - 1)])
    wanted = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes)))

    def stress(points: np.ndarray) -> float:
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        scale = (apart * wanted).sum() / (apart**2).sum()
        return float(((scale * apart - wanted) ** 2).sum())

    before, after = (stress(place(edges, nodes, count)) for count in (steps, steps + 1))
    assert after <= before * (1 + 1e-9) + 1e-9


def test_parts_that_no_path_joins_lie_apart() -> None:
    points = place(np.array([[0, 1], [2, 3]]), 4)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert min(apart[0, 2], apart[0, 3], apart[1, 2], apart[1, 3]) > max(apart[0, 1], apart[2, 3])

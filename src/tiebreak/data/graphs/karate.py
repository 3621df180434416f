"""Zachary's karate club, from networkx: 34 members, their 78 friendships, and the two factions that it split into.

Members are numbered from 0: 0 is the instructor, Mr. Hi, and 33 the officer. As in the usual demonstration these two
are the training nodes; a fourth of the others of each faction is for validation, the rest for testing. The only
feature of a member is its number, one-hot (the identity matrix), so all information comes along the edges.

The picture places members by the stress of their distances: from a circle, 200 steps of

    X ← B(X) X / N,    B_ij = -d_ij / |x_i - x_j| for i ≠ j, rows sum to 0,

each of which brings Σ (|x_i - x_j| - d_ij)² down (Guttman's transform), d_ij the length of the shortest path.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, identity
from scipy.sparse.csgraph import shortest_path

from tiebreak.data.graphs.graph_parts import Indices, Parts
from tiebreak.data.splits import stratified
from tiebreak.streams import stream

MEMBERS = 34
FACTIONS = ("Mr. Hi", "officer")


def make_karate() -> Parts:
    """The karate club."""
    import networkx  # slow to import: only when it is needed

    club = networkx.karate_club_graph()
    labels = np.array([int(club.nodes[member]["club"] != FACTIONS[0]) for member in range(MEMBERS)], np.int64)
    others = np.arange(1, MEMBERS - 1)
    val, test = stratified(
        labels[others], (len(others) // 4, len(others) - len(others) // 4), stream(0, "split", "karate")
    )
    return Parts(
        where="karate",
        features=identity(MEMBERS, dtype=np.float32, format="csr"),
        labels=labels,
        edges=np.array(sorted((min(pair), max(pair)) for pair in club.edges)),
        splits={"train": np.array([0, MEMBERS - 1]), "val": others[val], "test": others[test]},
        class_names=FACTIONS,
        split_rule="the instructor and the officer for training, a fourth of the others for validation",
    )


def place(edges: Indices, nodes: int, steps: int = 200) -> NDArray[np.float64]:
    """Positions [N, 2] of the nodes of a graph for a picture, within -1 to 1; components lie apart."""
    joined = coo_matrix((np.ones(len(edges)), tuple(edges.T)), shape=(nodes, nodes))
    distances = np.asarray(shortest_path(joined, directed=False, unweighted=True))
    reached = np.isfinite(distances)
    distances[~reached] = distances[reached].max() + 1
    angles = 2 * np.pi * np.arange(nodes) / nodes
    points: NDArray[np.float64] = np.stack([np.cos(angles), np.sin(angles)], 1)
    for _ in range(steps):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = -np.divide(distances, apart, out=np.zeros_like(distances), where=apart > 0)
        np.fill_diagonal(pull, -pull.sum(1))
        points = pull @ points / nodes
    return np.asarray(points / np.abs(points).max())

"""Zachary's karate club: 34 members, the 78 friendships outside the club, and the two factions that it split into.

Members are numbered from 0: 0 is the instructor, Mr. Hi, and 33 the officer. As in the usual demonstration these two
are the training nodes; a fourth of the others of each faction is for validation, the rest for testing. The only
feature of a member is who it is (the identity matrix), so everything that is learned comes along the edges.

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
WITH_MR_HI = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21)
FRIENDS = {  # of each member, those with a higher number
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}


def make_karate() -> Parts:
    """The karate club."""
    labels = np.ones(MEMBERS, np.int64)
    labels[list(WITH_MR_HI)] = 0
    others = np.arange(1, MEMBERS - 1)
    val, test = stratified(
        labels[others], (len(others) // 4, len(others) - len(others) // 4), stream(0, "split", "karate")
    )
    return Parts(
        where="karate",
        features=identity(MEMBERS, dtype=np.float32, format="csr"),
        labels=labels,
        edges=np.array([(member, friend) for member, friends in FRIENDS.items() for friend in friends]),
        splits={"train": np.array([0, MEMBERS - 1]), "val": others[val], "test": others[test]},
        class_names=FACTIONS,
        split_rule="the instructor and the officer for training, a fourth of the others for validation",
    )


def place(edges: Indices, nodes: int, steps: int = 200) -> NDArray[np.float64]:
    """Positions [N, 2] of the nodes of a graph for a picture, within -1 to 1; parts that no path joins lie apart."""
    joined = coo_matrix((np.ones(len(edges)), tuple(edges.T)), shape=(nodes, nodes))
    wanted = np.asarray(shortest_path(joined, directed=False, unweighted=True))
    reached = np.isfinite(wanted)
    wanted[~reached] = wanted[reached].max() + 1
    angles = 2 * np.pi * np.arange(nodes) / nodes
    points: NDArray[np.float64] = np.stack([np.cos(angles), np.sin(angles)], 1)
    for _ in range(steps):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = -np.divide(wanted, apart, out=np.zeros_like(wanted), where=apart > 0)
        np.fill_diagonal(pull, -pull.sum(1))
        points = pull @ points / nodes
    return np.asarray(points / np.abs(points).max())

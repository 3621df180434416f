"""Cora in the files of Planetoid, eight of them, seven of which are pickles (see unpickle.py).

| file           | holds                                                                           |
|----------------|---------------------------------------------------------------------------------|
| x, y           | features and one-hot labels of the training nodes: the first nodes               |
| allx, ally     | of all nodes but those for testing: x and y again, then the others               |
| tx, ty         | of the nodes for testing, in the order of test.index                            |
| test.index     | the number of each of these nodes: tx[i] belongs to node test.index[i]           |
| graph          | the neighbours of each node                                                     |

Nodes are numbered as in `graph`: those of allx, then those for testing by ascending number. The 500 nodes after the
training nodes are for validation. Addresses, sha256 and licences: `sources.SOURCES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from tiebreak.data.graphs.graph_parts import Indices, Matrix, Parts
from tiebreak.data.graphs.unpickle import read_array, read_lists, read_matrix
from tiebreak.errors import TiebreakError
from tiebreak.files import read_text
from tiebreak.text import printable

VALIDATION = 500


def read_planetoid(files: Mapping[str, Path], validation: int = VALIDATION) -> Parts:
    """The graph in the files, by what comes after `ind.cora.` in their names."""
    where = printable(files["graph"])
    known, known_labels = _half(files["allx"], files["ally"])
    test, test_labels = _half(files["tx"], files["ty"])
    train, _ = _half(files["x"], files["y"])
    if not known.shape[1] == test.shape[1] == train.shape[1]:
        raise TiebreakError(f"{where}: x, tx and allx have different numbers of features; get the files again")
    first, nodes = known.shape[0], known.shape[0] + test.shape[0]
    if train.shape[0] + validation > first:
        raise TiebreakError(f"{where}: allx has {first} nodes, fewer than x and {validation} for validation")
    places = _test_index(files["test.index"], first, nodes)
    back = np.argsort(places)  # the row of tx that holds each test node
    labels = np.concatenate([known_labels, test_labels[back]])
    count = train.shape[0]
    return Parts(
        where=where,
        features=csr_matrix(vstack([known, test[back]]), dtype=np.float32),
        labels=labels,
        edges=_pairs(where, read_lists(files["graph"])),
        splits={
            "train": np.arange(count),
            "val": np.arange(count, count + validation),
            "test": np.arange(first, nodes),
        },
    )


def _half(features_file: Path, labels_file: Path) -> tuple[Matrix, Indices]:
    features, one_hot = read_matrix(features_file), read_array(labels_file)
    where = printable(labels_file)
    if one_hot.ndim != 2 or len(one_hot) != features.shape[0]:
        raise TiebreakError(f"{where}: shape {one_hot.shape}; expected a row for each of {features.shape[0]} nodes")
    if not (np.isin(one_hot, (0, 1)).all() and (one_hot.sum(1) == 1).all()):
        raise TiebreakError(f"{where}: not one-hot labels: every row needs a single 1")
    return features, one_hot.argmax(1).astype(np.int64)


def _test_index(path: Path, first: int, nodes: int) -> Indices:
    where = printable(path)
    try:
        places = np.array([int(line) for line in read_text(path).split()], np.int64)
    except (ValueError, OverflowError):
        raise TiebreakError(f"{where}: expected a whole number a line") from None
    if not np.array_equal(np.sort(places), np.arange(first, nodes)):
        raise TiebreakError(f"{where}: expected the nodes {first} to {nodes - 1}, each once, in any order")
    return places


def _pairs(where: str, neighbours: Mapping[int, list[int]]) -> NDArray[Any]:
    """Each edge once: both of its ends list it, which does not count as a repetition."""
    pairs = [(node, other) for node, others in neighbours.items() for other in others]
    try:
        directed = np.array(pairs, np.int64).reshape(-1, 2)
    except OverflowError:
        raise TiebreakError(f"{where}: a node's number is too large") from None
    forth = directed[directed[:, 0] <= directed[:, 1]]
    back = directed[directed[:, 0] > directed[:, 1]][:, ::-1]
    alone = np.array(sorted(set(map(tuple, back.tolist())) - set(map(tuple, forth.tolist()))), np.int64)
    return np.concatenate([forth, alone.reshape(-1, 2)])

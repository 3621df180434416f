"""The parts of a graph as they are read, and the checks that every graph must pass.

Edges are undirected: each is stored once, as (lower, higher) node. Self-loops and repetitions, in either direction, are
removed and counted: a graph convolution adds its own loops. Nodes without an edge are allowed, and so are graphs of
several components. A label of -1 means unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from tiebreak.data.splits import SPLITS, permutation
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream

MOST_FEATURES = 1 << 22  # of a node
UNKNOWN = -1  # the label of a node whose class is not known
PER_CLASS = 20  # training nodes of a class, as in the public splits of Planetoid
SPLIT_RULE = f"of every class at most {PER_CLASS} nodes and 60 % for training, half of the others each for val and test"

Indices = NDArray[np.int64]
Matrix = csr_matrix[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """Features [N, F], labels [N] (-1: unknown), edges [E, 2] as given; `splits` None: not given."""

    where: str  # for messages
    features: Matrix
    labels: Indices
    edges: NDArray[np.integer]
    splits: Mapping[str, Indices] | None = None
    class_names: tuple[str, ...] = ()  # none given: their numbers
    node_names: tuple[str, ...] = ()  # the same
    split_rule: str = "as published"
    notes: tuple[str, ...] = ()  # what was left out


class Edges(NamedTuple):
    """Each undirected edge once [E, 2], ascending; how many self-loops and repetitions were removed."""

    edges: Indices
    loops: int
    repeated: int

    def notes(self, nodes: int) -> tuple[str, ...]:
        """What was removed, and what is unusual about the rest, in words."""
        sources, targets = self.edges.T
        joined = coo_matrix((np.ones(len(self.edges), np.int8), (sources, targets)), shape=(nodes, nodes))
        parts, _ = connected_components(joined, directed=False)
        isolated = nodes - len(np.unique(self.edges))
        return tuple(
            note
            for count, note in (
                (self.loops, f"self-loops removed: {self.loops:,}"),
                (self.repeated, f"repeated edges removed, in either direction: {self.repeated:,}"),
                (isolated, f"nodes without an edge: {isolated:,}"),
                (parts - 1, f"connected components: {parts:,}"),
            )
            if count
        )


def clean(where: str, edges: NDArray[np.integer], nodes: int) -> Edges:
    """The edges, each once and without self-loops; an error where one leads to a node that is not there."""
    missing = np.flatnonzero(((edges < 0) | (edges >= nodes)).any(1))
    if len(missing):
        pair = " and ".join(map(str, edges[missing[0]].tolist()))
        raise TiebreakError(f"{where}: edge {missing[0]} joins {pair}, but the nodes are 0 to {nodes - 1}")
    ordered = np.sort(edges.astype(np.int64), axis=1)
    proper = ordered[ordered[:, 0] != ordered[:, 1]]
    kept = np.unique(proper, axis=0)
    if not len(kept):
        raise TiebreakError(f"{where}: no edge between two nodes; a graph needs one")
    return Edges(kept, len(ordered) - len(proper), len(proper) - len(kept))


def sparse_rows(
    where: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, ...]
) -> Matrix:
    """A matrix from its compressed rows, if these make sense: row i holds data[indptr[i]:indptr[i + 1]]."""
    problem = None
    if len(shape) != 2 or min(shape) < 1 or shape[1] > MOST_FEATURES:
        problem = f"shape {shape}"
    elif len(indptr) != shape[0] + 1 or indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
        problem = f"its rows do not fit the shape {shape} and {len(data):,} values"
    elif len(indices) != len(data) or (len(data) and not 0 <= indices.min() <= indices.max() < shape[1]):
        problem = f"its columns are not those of {shape[1]:,} features"
    if problem:
        raise TiebreakError(f"{where}: not a matrix in compressed rows: {problem}")
    matrix = csr_matrix(
        (data.astype(np.float32), indices.astype(np.int32), indptr.astype(np.int32)), (shape[0], shape[1])
    )
    matrix.sum_duplicates()
    return checked_features(where, matrix)


def checked_features(where: str, features: Matrix) -> Matrix:
    """The features, if all of them are finite numbers."""
    if wrong := int((~np.isfinite(features.data)).sum()):
        raise TiebreakError(f"{where}: {wrong:,} features are infinite or not a number; every one must be a number")
    return features


def class_count(where: str, labels: Indices) -> int:
    """The number of classes, by the largest label. Every class has a node, so there are no more of them than nodes."""
    largest = int(labels.max(initial=0))
    if largest >= len(labels):
        raise TiebreakError(
            f"{where}: label {largest} of node {labels.argmax()}; {len(labels):,} nodes have labels below that: "
            "expected 0, 1, 2, ..., one for each class"
        )
    return largest + 1


def check_labels(where: str, labels: Indices, classes: int) -> None:
    """Raise unless there are labels, two classes or more, and each label is one of them or -1."""
    wrong = np.flatnonzero((labels < UNKNOWN) | (labels >= classes))
    if len(wrong):
        raise TiebreakError(
            f"{where}: label {labels[wrong[0]]} of node {wrong[0]}; expected 0 to {classes - 1}, or -1: unknown"
        )
    if not (labels != UNKNOWN).any():
        raise TiebreakError(f"{where}: no node has a label; some of every class are needed")
    if classes < 2:
        raise TiebreakError(f"{where}: one class only; at least two are needed")


def check_splits(where: str, splits: Mapping[str, Indices], labels: Indices, class_names: tuple[str, ...]) -> None:
    """Raise unless the splits are labelled nodes, of one split each, and training has all classes."""
    times = np.zeros(len(labels), np.int64)
    for split in SPLITS:
        nodes = splits[split]
        if not len(nodes):
            raise TiebreakError(f"{where}: no {split} node; train, val and test all need some")
        if nodes.min() < 0 or nodes.max() >= len(labels):
            raise TiebreakError(f"{where}: {split} names a node that is not one of 0 to {len(labels) - 1}")
        if (nameless := nodes[labels[nodes] == UNKNOWN]).size:
            raise TiebreakError(f"{where}: node {nameless[0]} is for {split}, but has no label")
        times += np.bincount(nodes, minlength=len(labels))
    if times.max() > 1:
        raise TiebreakError(f"{where}: node {times.argmax()} is in the splits {times.max()} times; once at most")
    present = np.bincount(labels[splits["train"]], minlength=len(class_names))
    if not present.all():
        raise TiebreakError(f"{where}: no training node of class {class_names[int(present.argmin())]}")


def split_nodes(where: str, labels: Indices, class_names: tuple[str, ...]) -> dict[str, Indices]:
    """Splits of the labelled nodes where none are given: `SPLIT_RULE`."""
    found: dict[str, list[Indices]] = {split: [] for split in SPLITS}
    for label, name in enumerate(class_names):
        nodes = np.flatnonzero(labels == label)
        if len(nodes) < 3:
            raise TiebreakError(f"{where}: {len(nodes)} labelled nodes of class {name}; at least 3 are needed to split")
        nodes = nodes[permutation(len(nodes), stream(0, "split", "graph", label))]
        train = max(1, min(PER_CLASS, len(nodes) * 6 // 10))
        val = (train + len(nodes)) // 2
        for split, part in (("train", nodes[:train]), ("val", nodes[train:val]), ("test", nodes[val:])):
            found[split].append(part)
    return {split: np.sort(np.concatenate(parts)) for split, parts in found.items()}

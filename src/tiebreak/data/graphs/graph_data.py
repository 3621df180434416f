"""Graphs whose nodes are to be classified: checked, with the nodes for training, validation and testing.

| data set       | from                      | nodes | edges | features | classes | splits: train / val / test    |
|----------------|---------------------------|-------|-------|----------|---------|-------------------------------|
| cora           | cora.npz                  | 2,708 | 5,278 | 1,433    | 7       | 140 / 500 / 1,000, public     |
| cora-planetoid | ind.cora.*, planetoid.py  | 2,708 | 5,278 | 1,433    | 7       | the same: it is the same graph |
| blocks         | generated, block_model.py | 1,000 | 3,836 | 120      | 4       | 80 / 300 / 620                |
| karate         | networkx, karate.py       | 34    | 78    | 34       | 2       | 2 / 8 / 24                    |
| a path         | see graph_files.py        | any   | any   | any      | any     | as given, or 20 a class       |

All edges and all features are seen while training; only labels are held out. N nodes, F features, E edges.
Addresses, sha256 and licences: `sources.SOURCES`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array

from tiebreak.data.fetch import find_source, joint_checksum, verify
from tiebreak.data.graphs.block_model import make_blocks
from tiebreak.data.graphs.graph_files import graph_checksum, read_graph, read_npz_graph
from tiebreak.data.graphs.graph_parts import (
    SPLIT_RULE,
    UNKNOWN,
    Indices,
    Matrix,
    Parts,
    check_labels,
    check_splits,
    class_count,
    clean,
    split_nodes,
)
from tiebreak.data.graphs.karate import make_karate, place
from tiebreak.data.graphs.planetoid import read_planetoid
from tiebreak.data.sources import Source
from tiebreak.data.splits import SPLITS, counts_by_split
from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError, nearest
from tiebreak.study.registry import is_path
from tiebreak.text import printable

CORA_CLASSES = (
    "theory",
    "reinforcement learning",
    "genetic algorithms",
    "neural networks",
    "probabilistic methods",
    "case based",
    "rule learning",
)
GENERATED = {"blocks": make_blocks, "karate": make_karate}
GRAPHS = ("cora", "cora-planetoid", *GENERATED)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphData:
    """A graph. `official` None: no checksum is published to compare its `checksum` with."""

    name: str
    features: Matrix  # [N, F] as given, not normalised
    labels: Indices  # [N]; -1: unknown
    edges: Indices  # [E, 2] undirected: each once, lower node first, no self-loops
    splits: Mapping[str, Indices]  # by split: ascending nodes
    class_names: tuple[str, ...]
    node_names: tuple[str, ...] = ()  # none: their numbers
    positions: NDArray[np.float64] | None = None  # [N, 2], for a picture
    checksum: str  # sha256 of its file; of a list, where there are several; of the arrays, where there is no file
    official: bool | None
    licence: str
    citation: str
    split_rule: str = "as published"
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of nodes of each split."""
        return {split: len(self.splits[split]) for split in SPLITS}

    def counts(self, split: str) -> list[int]:
        """The number of nodes of each class in a split."""
        return [int(count) for count in np.bincount(self.labels[self.splits[split]], minlength=self.classes)]

    def degrees(self) -> Indices:
        """The number of neighbours of each node [N]."""
        return np.bincount(self.edges.ravel(), minlength=self.nodes)

    def normalised(self) -> Matrix:
        """The features with rows that sum to one, as Kipf and Welling use them; a row that sums to zero stays."""
        sums = np.asarray(self.features.sum(axis=1)).ravel()
        scales = np.divide(1.0, sums, out=np.ones_like(sums), where=sums != 0)
        return Matrix(diags_array(scales) @ self.features, dtype=np.float32)

    @property
    def signed(self) -> bool:
        """Whether a feature is below 0, so that those of a node may sum to nearly 0."""
        return bool(self.features.nnz and self.features.min() < 0)

    def description(self) -> list[str]:
        """What the graph holds, in lines."""
        name = printable(self.name)
        rows = zip(self.class_names, *map(self.counts, SPLITS), strict=True)
        return [
            f"{name}: {self.nodes:,} nodes, {len(self.edges):,} edges, {self.features.shape[1]:,} features, "
            f"{self.classes} classes; {counts_by_split([*self.sizes.values()])}",
            f"{name}: split {self.split_rule}; sha256 {self.checksum}",
            *(f"  {note}" for note in self.notes),
            *(f"  {class_name}: {counts_by_split(counts)}" for class_name, *counts in rows),
        ]


def load(name: str, data_dir: Path | None = None) -> GraphData:
    """The graph called `name`, or the user's own at that path, checked and split."""
    if is_path(name):
        path = find_user_path(name, data_dir)
        return _graph(Source(name=name, licence="", citation=""), read_graph(path), graph_checksum(path), None)
    _check_name(name)
    source = find_source(name)
    if name in GENERATED:
        parts = GENERATED[name]()
        return _graph(source, parts, _parts_checksum(parts), None)
    files = verify(name, data_dir)
    paths = {filename: file.path for filename, file in files.items()}
    if name == "cora":
        parts = read_npz_graph(paths["cora.npz"])
    else:
        parts = read_planetoid({filename.removeprefix("ind.cora."): path for filename, path in paths.items()})
    return _graph(source, parts, joint_checksum(files), all(file.official for file in files.values()))


def checksum(name: str, data_dir: Path | None = None) -> str:
    """The checksum that `load` would give; no file is read as a graph for it."""
    if is_path(name):
        return graph_checksum(find_user_path(name, data_dir))
    _check_name(name)
    return _parts_checksum(GENERATED[name]()) if name in GENERATED else joint_checksum(verify(name, data_dir))


def _check_name(name: str) -> None:
    if name not in GRAPHS:
        hint = "your own graph is a path with a slash, such as ./graph"
        raise TiebreakError(f"no graph is called {name!r}; {nearest(name, GRAPHS)} ({hint})")


def _parts_checksum(parts: Parts) -> str:
    hasher = hashlib.sha256()
    splits = parts.splits or {}
    hasher.update(parts.features.toarray().astype("<f4").tobytes())
    for array in (parts.labels, parts.edges, *(splits[split] for split in SPLITS)):
        hasher.update(array.astype("<i8").tobytes())
    return hasher.hexdigest()


def _graph(source: Source, parts: Parts, checksum: str, official: bool | None) -> GraphData:
    where, labels = parts.where, parts.labels
    names = CORA_CLASSES if source.name.startswith("cora") else parts.class_names
    names = names or tuple(map(str, range(class_count(where, labels))))
    check_labels(where, labels, len(names))
    splits, rule = parts.splits, parts.split_rule
    if splits is None:
        splits, rule = split_nodes(where, labels, names), SPLIT_RULE
    check_splits(where, splits, labels, names)
    edges = clean(where, parts.edges, len(labels))
    notes = (*edges.notes(len(labels)), *parts.notes)
    if unlabelled := int((labels == UNKNOWN).sum()):
        notes = (*notes, f"nodes without a label: {unlabelled:,}")
    return GraphData(
        name=source.name,
        features=parts.features,
        labels=labels,
        edges=edges.edges,
        splits={split: np.sort(splits[split]) for split in SPLITS},
        class_names=names,
        node_names=parts.node_names,
        positions=place(edges.edges, len(labels)) if source.name == "karate" else None,
        checksum=checksum,
        official=official,
        licence=source.licence,
        citation=source.citation,
        split_rule=rule,
        notes=notes,
    )

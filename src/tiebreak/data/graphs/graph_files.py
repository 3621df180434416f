"""A user's own graph: one npz file, or a folder of CSV files. Also the layout of cora.npz.

| file                           | holds                                                                            |
|--------------------------------|----------------------------------------------------------------------------------|
| GRAPH.npz                      | edges [E, 2], features, labels [N] (-1: unknown); optional has_label [N], and     |
|                                | train_idx, val_idx, test_idx, all three or none                                  |
| FOLDER/edges.csv               | source,target                                                                    |
| FOLDER/features.csv            | node, then a column of numbers for each feature                                  |
| FOLDER/features.npz, instead   | features; the nodes are then called 0, 1, 2, ...                                 |
| FOLDER/labels.csv              | node,label and optionally split: train, val, test, or empty for neither          |

Features in an npz file are `features` [N, F], or compressed rows: feat_data, feat_indices, feat_indptr, feat_shape.
CSV files are UTF-8 with a header line; further columns of edges.csv and labels.csv are ignored. Any text names a
node or a class. A node that labels.csv does not name, or names without a label, has no known class.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from tiebreak.data.checksums import file_checksum
from tiebreak.data.graphs.graph_parts import UNKNOWN, Indices, Matrix, Parts, checked_features, sparse_rows
from tiebreak.data.left_out import left_out
from tiebreak.data.npz import ArraySpec, array_names, read_npz
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import is_file, read_text
from tiebreak.text import printable

FILES = ("edges.csv", "features.csv", "features.npz", "labels.csv")
SPLIT_KEYS = {split: f"{split}_idx" for split in SPLITS}
WHOLE, FLAGS = ArraySpec(ndim=(1,), kinds="iu"), ArraySpec(ndim=(1,), kinds="b")
PAIRS, DENSE, VALUES = (ArraySpec(ndim=(n,), kinds=kinds) for n, kinds in ((2, "iu"), (2, "buif"), (1, "buif")))
MOST_NAMED = 8  # columns in a message
COMPRESSED = {"feat_data": VALUES, "feat_indices": WHOLE, "feat_indptr": WHOLE, "feat_shape": WHOLE}


class Row(NamedTuple):
    """The chosen fields of a line of a CSV file."""

    line: int
    fields: list[str]


def graph_checksum(path: Path) -> str:
    """The sha256 of a file, or of the list of a folder's files."""
    if not path.is_dir():
        return file_checksum(path)
    lines = [f"{file_checksum(path / name)}  {name}\n" for name in FILES if is_file(path / name)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read_graph(path: Path) -> Parts:
    """The graph in an npz file or in a folder."""
    if path.name in FILES and path.suffix == ".csv":
        raise TiebreakError(f"{printable(path)}: one file of a graph; name the folder that holds all of them")
    return _read_folder(path) if path.is_dir() else read_npz_graph(path)


def read_npz_graph(path: Path) -> Parts:
    """The graph in one npz file."""
    where, keys = printable(path), array_names(path)
    given = [key for key in SPLIT_KEYS.values() if key in keys]
    if given and len(given) < len(SPLITS):
        raise TiebreakError(f"{where}: has {' and '.join(given)}, but train_idx, val_idx, test_idx are one set")
    optional = {"has_label": FLAGS} if "has_label" in keys else {}
    arrays = read_npz(path, {"edges": PAIRS, "labels": WHOLE, **optional, **dict.fromkeys(given, WHOLE)})
    labels, edges = arrays["labels"].astype(np.int64), arrays["edges"]
    if edges.shape[1] != 2:
        raise TiebreakError(f"{where}: edges has shape {edges.shape}; expected two nodes a row")
    if "has_label" in arrays:
        if len(arrays["has_label"]) != len(labels):
            raise TiebreakError(f"{where}: {len(arrays['has_label'])} of has_label, but {len(labels)} labels")
        labels = np.where(arrays["has_label"], labels, UNKNOWN)
    features = _npz_features(path)
    if features.shape[0] != len(labels):
        raise TiebreakError(f"{where}: features of {features.shape[0]} nodes, but {len(labels)} labels")
    splits = {split: arrays[key].astype(np.int64) for split, key in SPLIT_KEYS.items()} if given else None
    return Parts(where=where, features=features, labels=labels, edges=edges, splits=splits, split_rule="as in the file")


def _npz_features(path: Path) -> Matrix:
    where = printable(path)
    if "feat_indptr" in array_names(path):
        arrays = read_npz(path, COMPRESSED)
        data, indices, indptr = (arrays[key] for key in ("feat_data", "feat_indices", "feat_indptr"))
        return sparse_rows(f"{where}: feat_*", data, indices, indptr, tuple(arrays["feat_shape"].tolist()))
    dense = read_npz(path, {"features": DENSE})["features"]
    if not dense.size:
        raise TiebreakError(f"{where}: features: empty, shape {dense.shape}")
    return checked_features(f"{where}: features", csr_matrix(dense.astype(np.float32)))


def _read_folder(folder: Path) -> Parts:
    where = printable(folder)
    for name in ("edges.csv", "labels.csv"):
        if not is_file(folder / name):
            raise TiebreakError(f"{where}: no {name}; a graph needs edges.csv, labels.csv and features.csv or .npz")
    has_csv, has_npz = (is_file(folder / f"features.{suffix}") for suffix in ("csv", "npz"))
    if has_csv == has_npz:
        problem = "both features.csv and features.npz; remove one" if has_csv else "no features.csv or features.npz"
        raise TiebreakError(f"{where}: {problem}")
    if has_csv:
        places, features = _csv_features(folder / "features.csv")
    else:
        features = _npz_features(folder / "features.npz")
        places = {str(node): node for node in range(features.shape[0])}
    labels, class_names, splits = _csv_labels(folder / "labels.csv", places)
    return Parts(
        where=where,
        features=features,
        labels=labels,
        edges=_csv_edges(folder / "edges.csv", places),
        splits=splits,
        class_names=class_names,
        node_names=tuple(places),
        split_rule="as in labels.csv",
        notes=(*_unused_columns(folder), *left_out(folder, {folder / name for name in FILES})),
    )


def _unused_columns(folder: Path) -> Iterator[str]:
    """A line for each file with columns that are not read."""
    for name, used in (("edges.csv", ("source", "target")), ("labels.csv", ("node", "label", "split"))):
        header = [field.strip() for field in next(csv.reader(read_text(folder / name).split("\n", 1)[:1]), [])]
        others = [printable(field) for field in header if field not in used]
        if others:
            yield f"left out: columns of {name}: {', '.join(others)}"


def _csv_features(path: Path) -> tuple[dict[str, int], Matrix]:
    where = printable(path)
    places: dict[str, int] = {}
    rows: list[NDArray[np.float32]] = []
    for line, (node, *values) in _rows(path, ("node",), rest=True):
        if node in places:
            raise TiebreakError(f"{where}: line {line}: node {node!r} occurs twice")
        try:
            rows.append(np.array(values, np.float32))
        except ValueError as error:
            raise TiebreakError(f"{where}: line {line}: {error}; features are numbers") from None
        places[node] = len(places)
    if not rows[0].size:
        raise TiebreakError(f"{where}: no column besides node; every node needs a feature")
    return places, checked_features(where, csr_matrix(np.stack(rows)))


def _csv_edges(path: Path, places: Mapping[str, int]) -> Indices:
    pairs = [[_place(path, line, node, places) for node in ends] for line, ends in _rows(path, ("source", "target"))]
    return np.array(pairs, np.int64)


def _csv_labels(path: Path, places: Mapping[str, int]) -> tuple[Indices, tuple[str, ...], dict[str, Indices] | None]:
    where = printable(path)
    given: dict[int, str] = {}
    chosen: dict[str, list[int]] = {split: [] for split in SPLITS}
    for line, (node, label, split) in _rows(path, ("node", "label"), optional=("split",)):
        place = _place(path, line, node, places)
        if place in given:
            raise TiebreakError(f"{where}: line {line}: node {node!r} occurs twice")
        given[place] = label
        if split:
            if split not in chosen:
                raise TiebreakError(f"{where}: line {line}: split {split!r}; {nearest(split, SPLITS)}")
            if not label:
                raise TiebreakError(f"{where}: line {line}: node {node!r} is for {split}, but has no label")
            chosen[split].append(place)
    names = sorted(
        set(given.values()) - {""}, key=lambda name: (not name.isdecimal(), len(name) * name.isdecimal(), name)
    )
    ids = {name: index for index, name in enumerate(names)}
    labels = np.full(len(places), UNKNOWN, np.int64)
    for place, label in given.items():
        labels[place] = ids.get(label, UNKNOWN)
    splits = {split: np.sort(np.array(nodes, np.int64)) for split, nodes in chosen.items()}
    return labels, tuple(map(printable, names)), splits if any(chosen.values()) else None


def _place(path: Path, line: int, node: str, places: Mapping[str, int]) -> int:
    if node not in places:
        raise TiebreakError(f"{printable(path)}: line {line}: there is no node {node!r}; nodes are those with features")
    return places[node]


def _rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...] = (), rest: bool = False) -> Iterator[Row]:
    """The named columns of a CSV file, line by line, without blank lines; `rest`: followed by all others."""
    where = printable(path)
    text = read_text(path)
    if not text.strip():
        raise TiebreakError(f"{where}: empty; expected a header line with {', '.join(columns)}")
    reader = csv.reader(text.split("\n"), strict=True)
    try:
        header = [field.strip() for field in next(reader)]
        if missing := [column for column in columns if column not in header]:
            found = ", ".join(map(printable, header[:MOST_NAMED])) + (", ..." if len(header) > MOST_NAMED else "")
            expected = ", ".join([*columns, *(["a column for each feature"] if rest else [])])
            raise TiebreakError(f"{where}: line 1: no column {missing[0]!r}; expected {expected}; found {found}")
        chosen: list[int | None] = [header.index(column) for column in columns]
        chosen += [header.index(column) if column in header else None for column in optional]
        chosen += [place for place in range(len(header)) if rest and place not in chosen]
        count = 0
        for fields in reader:
            if not any(field.strip() for field in fields):
                continue
            if len(fields) != len(header):
                raise TiebreakError(f"{where}: line {reader.line_num}: {len(fields)} fields, but {len(header)} columns")
            count += 1
            yield Row(reader.line_num, ["" if place is None else fields[place].strip() for place in chosen])
    except csv.Error as error:
        raise TiebreakError(f"{where}: line {reader.line_num}: {error}") from None
    if not count:
        raise TiebreakError(f"{where}: nothing but a header")

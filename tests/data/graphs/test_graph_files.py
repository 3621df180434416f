"""A user's graph: tables of a folder, arrays of an npz file, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tiebreak.data.graphs import graph_data
from tiebreak.data.graphs.graph_data import load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

EDGES = "source,target\na,b\nb,a\nb,c\nc,c\nd,e\ne,f\nd,f\n"


FEATURES = "node,red,blue\na,1,0\nb,0,0\nc,2,2\nd,1,3\ne,0,1\nf,0,2\ng,0,5\n"


LABELS = "node,label,split\na,x,train\nb,x,val\nc,x,test\nd,y,train\ne,y,val\nf,y,test\n"


def folder(tmp_path: Path, edges: str = EDGES, features: str = FEATURES, labels: str = LABELS) -> str:
    for name, text in (("edges", edges), ("features", features), ("labels", labels)):
        (tmp_path / f"{name}.csv").write_text(text)
    return str(tmp_path)


def refusal(name: str) -> str:
    with pytest.raises(TiebreakError) as caught:
        load(name)
    line = str(caught.value)
    assert "\n" not in line
    return line


def arrays(**changes: Any) -> dict[str, NDArray[Any]]:
    plain: dict[str, Any] = {
        "edges": np.array([[0, 1], [1, 2], [3, 4], [4, 5]]),
        "features": np.eye(7),
        "labels": np.array([0, 0, 0, 1, 1, 1, -1]),
    }
    return {key: value for key, value in (plain | changes).items() if value is not None}


def npz(tmp_path: Path, **changes: Any) -> str:
    np.savez(tmp_path / "graph.npz", allow_pickle=False, **arrays(**changes))
    return str(tmp_path / "graph.npz")


def test_a_folder_of_tables(tmp_path: Path) -> None:
    data = load(folder(tmp_path))
    assert data.edges.tolist() == [[0, 1], [1, 2], [3, 4], [3, 5], [4, 5]]
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert data.class_names == ("x", "y")
    assert {split: nodes.tolist() for split, nodes in data.splits.items()} == {
        "train": [0, 3],
        "val": [1, 4],
        "test": [2, 5],
    }
    assert data.features.toarray()[2].tolist() == [2, 2]
    words = ("self-loops", "repeated edges", "without an edge", "components", "without a label")
    for note, word, count in zip(data.notes, words, (1, 1, 1, 3, 1), strict=True):
        assert word in note
        assert note.endswith(f": {count}")
    assert all(f"  {note}" in data.description() for note in data.notes)
    assert data.checksum == graph_data.checksum(str(tmp_path))
    assert data.official is None


def test_labels_may_be_missing_and_then_are_unknown(tmp_path: Path) -> None:
    data = load(folder(tmp_path, labels="node,label\na,10\nb,10\nc,10\nd,9\ne,9\nf,9\ng,\n"))
    assert data.class_names == ("9", "10")
    assert data.labels.tolist() == [1, 1, 1, 0, 0, 0, -1]
    assert data.sizes == {"train": 2, "val": 2, "test": 2}
    assert "20 nodes" in data.split_rule
    assert data.counts("train") == [1, 1]


@pytest.mark.parametrize("compressed", [False, True])
def test_one_npz_file(tmp_path: Path, compressed: bool) -> None:
    rows: dict[str, Any] = {
        "features": None,
        "feat_data": np.array([1.0, 2.0]),
        "feat_indices": np.array([1, 0]),
        "feat_indptr": np.array([0, 1, 2, 2, 2, 2, 2, 2]),
        "feat_shape": np.array([7, 2]),
    }
    data = load(npz(tmp_path, **(rows if compressed else {})))
    assert data.features.shape == ((7, 2) if compressed else (7, 7))
    assert data.class_names == ("0", "1")
    assert data.checksum == graph_data.checksum(str(tmp_path / "graph.npz"))
    if compressed:
        assert data.features.toarray()[:2].tolist() == [[0, 1], [2, 0]]


def test_splits_and_unknown_labels_of_an_npz_file(tmp_path: Path) -> None:
    splits = {"train_idx": np.array([3, 0]), "val_idx": np.array([1]), "test_idx": np.array([4])}
    known = np.array([1, 1, 0, 1, 1, 1, 1], bool)
    data = load(npz(tmp_path, labels=np.array([0, 0, 0, 1, 1, 1, 1]), has_label=known, **splits))
    assert data.splits["train"].tolist() == [0, 3]
    assert data.labels[2] == -1
    assert data.split_rule == "as in the file"


def test_features_of_a_folder_in_an_npz_file(tmp_path: Path) -> None:
    labels = "node,label\n" + "".join(f"{node},{node % 2}\n" for node in range(6))
    name = folder(tmp_path, edges="source,target,weight\n0,1,0.5\n5,2,1\n", labels=labels)
    assert "both features.csv and features.npz" in refusal_with(tmp_path, name)
    (tmp_path / "features.csv").unlink()
    assert load(name).edges.tolist() == [[0, 1], [2, 5]]
    (tmp_path / "features.npz").unlink()
    assert "no features.csv or features.npz" in refusal(name)


def refusal_with(tmp_path: Path, name: str) -> str:
    np.savez(tmp_path / "features.npz", features=np.ones((6, 3), np.float32))
    return refusal(name)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"edges": ""}, "edges.csv: empty"),
        ({"edges": "source,target\n"}, "edges.csv: nothing but a header"),
        ({"edges": "source,target\na,a\n"}, "no edge between two nodes"),
        ({"edges": "source,target\na,b\n\na,z\n"}, "edges.csv: line 4: there is no node 'z'"),
        ({"edges": "from,to\na,b\n"}, "edges.csv: line 1: no column 'source'; expected source, target; found from, to"),
        ({"edges": "source,target\na\n"}, "edges.csv: line 2: 1 fields, but 2 columns"),
        ({"edges": 'source,target\na,"b\n'}, "edges.csv: line"),
        ({"features": "node,red\na,1\na,2\n"}, "features.csv: line 3: node 'a' occurs twice"),
        ({"features": "node,red\na,one\n"}, "features.csv: line 2: could not convert string to float"),
        ({"features": FEATURES.replace("a,1", "a,nan")}, "1 features are infinite or not a number"),
        ({"features": "node\na\n"}, "no column besides node"),
        ({"labels": "node,label\n"}, "labels.csv: nothing but a header"),
        ({"labels": "node,label\na,\nb,\n"}, "no node has a label"),
        ({"labels": "node,label\nz,x\n"}, "labels.csv: line 2: there is no node 'z'"),
        ({"labels": "node,label\na,x\na,y\n"}, "labels.csv: line 3: node 'a' occurs twice"),
        ({"labels": "node,label\na,x\nb,x\nc,x\n"}, "one class only"),
        ({"labels": "node,label\na,x\nb,x\nc,x\nd,y\n"}, "1 labelled nodes of class y; at least 3"),
        ({"labels": LABELS.replace("a,x,train", "a,,train")}, "line 2: node 'a' is for train, but has no label"),
        ({"labels": LABELS.replace("a,x,train", "a,x,trian")}, "line 2: split 'trian'; did you mean 'train'?"),
        ({"labels": LABELS.replace("val", "")}, "no val node"),
        ({"labels": LABELS.replace("d,y,train", "d,y,val")}, "no training node of class y"),
    ],
)
def test_tables_that_make_no_sense(tmp_path: Path, change: dict[str, str], line: str) -> None:
    assert line in refusal(folder(tmp_path, **change))


def test_missing_tables_and_names(tmp_path: Path) -> None:
    assert "no edges.csv" in refusal(str(tmp_path))
    assert "no such file" in refusal(str(tmp_path / "none"))
    assert "did you mean 'karate'?" in refusal("karat")
    (tmp_path / "edges.csv").write_bytes(b"source,target\n\xff,b\n")
    (tmp_path / "features.csv").write_text(FEATURES)
    (tmp_path / "labels.csv").write_text(LABELS)
    assert "line 2: not UTF-8 text (byte 14)" in refusal(str(tmp_path))


SPLIT = {"train_idx": np.array([0, 3]), "val_idx": np.array([1]), "test_idx": np.array([4])}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"edges": np.array([[0, 1], [2, 7]])}, "edge 1 joins 2 and 7, but the nodes are 0 to 6"),
        ({"edges": np.array([[0, -1]])}, "edge 0 joins 0 and -1"),
        ({"edges": np.zeros((3, 3), int)}, "expected two nodes a row"),
        ({"edges": np.zeros((0, 2), int)}, "no edge between two nodes"),
        ({"labels": np.array([0, 1])}, "features of 7 nodes, but 2 labels"),
        ({"labels": np.full(7, -1)}, "no node has a label"),
        ({"labels": np.array([0, 0, 0, 1, 1, 1, -2])}, "label -2 of node 6"),
        ({"features": np.full((7, 2), np.inf)}, "14 features are infinite"),
        ({"features": np.zeros((7, 0))}, "features: empty"),
        ({"features": None}, "no array 'features'; expected features"),
        ({"has_label": np.ones(3, bool)}, "3 of has_label, but 7 labels"),
        ({"train_idx": np.array([0])}, "are one set"),
        (SPLIT | {"test_idx": np.array([6])}, "node 6 is for test, but has no label"),
        (SPLIT | {"test_idx": np.array([99])}, "test names a node that is not one of 0 to 6"),
        (SPLIT | {"test_idx": np.array([1])}, "node 1 is in the splits 2 times"),
        (SPLIT | {"val_idx": np.array([], int)}, "no val node"),
        (SPLIT | {"train_idx": np.array([0])}, "no training node of class 1"),
    ],
)
def test_arrays_that_make_no_sense(tmp_path: Path, change: dict[str, Any], line: str) -> None:
    assert line in refusal(npz(tmp_path, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"feat_indptr": np.array([0, 2, 1, 2, 2, 2, 2, 2])},
        {"feat_indptr": np.array([0, 9, 9, 9, 9, 9, 9, 9])},
        {"feat_indices": np.array([0, 2])},
        {"feat_indices": np.array([0, -1])},
        {"feat_indices": np.array([0])},
        {"feat_shape": np.array([7])},
        {"feat_shape": np.array([-7, 2])},
    ],
)
def test_compressed_rows_that_make_no_sense(tmp_path: Path, change: dict[str, Any]) -> None:
    rows: dict[str, Any] = {
        "features": None,
        "feat_data": np.ones(2),
        "feat_indices": np.array([1, 0]),
        "feat_indptr": np.array([0, 1, 2, 2, 2, 2, 2, 2]),
        "feat_shape": np.array([7, 2]),
    }
    assert "not a matrix in compressed rows" in refusal(npz(tmp_path, **(rows | change)))

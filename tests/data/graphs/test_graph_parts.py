"""Edges cleaned, compressed rows checked, nodes split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from tiebreak.data.graphs.graph_parts import (
    check_labels,
    check_splits,
    checked_features,
    clean,
    sparse_rows,
    split_nodes,
)
from tiebreak.errors import TiebreakError


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 40), st.just(2)), elements=st.integers(0, 9)))
def test_cleaning_keeps_each_pair_once(edges: NDArray[np.int64]) -> None:
    pairs = {(min(pair), max(pair)) for pair in edges.tolist() if pair[0] != pair[1]}
    if not pairs:
        with pytest.raises(TiebreakError, match="no edge"):
            clean("here", edges, 10)
        return
    cleaned = clean("here", edges, 10)
    assert [tuple(pair) for pair in cleaned.edges.tolist()] == sorted(pairs)
    assert len(cleaned.edges) + cleaned.loops + cleaned.repeated == len(edges)


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=200))
def test_splits_are_labelled_disjoint_and_have_every_class(given_labels: list[int]) -> None:
    labels = np.array(given_labels)
    counts = np.bincount(labels[labels >= 0], minlength=3)
    if counts.min() < 3:
        with pytest.raises(TiebreakError, match="at least 3 are needed"):
            split_nodes("here", labels, ("a", "b", "c"))
        return
    splits = split_nodes("here", labels, ("a", "b", "c"))
    together = np.concatenate([*splits.values()])
    np.testing.assert_array_equal(np.sort(together), np.flatnonzero(labels >= 0))
    for nodes in splits.values():
        assert np.bincount(labels[nodes], minlength=3).min() >= 1
    assert np.bincount(labels[splits["train"]]).max() <= 20


def test_edges_to_nodes_that_do_not_exist_are_refused() -> None:
    with pytest.raises(TiebreakError, match=r"here: edge 1 .*2 and 7.* 0 to 6"):
        clean("here", np.array([[0, 1], [2, 7]]), 7)
    with pytest.raises(TiebreakError, match="edge 0"):
        clean("here", np.array([[0, -1]]), 7)


def test_notes_count_what_is_unusual() -> None:
    notes = clean("here", np.array([[0, 1], [1, 0], [2, 2], [3, 4]]), 6).notes(6)
    for word, count in (("self-loops", 1), ("repeated", 1), ("without an edge", 2), ("components", 4)):
        assert any(word in note and str(count) in note for note in notes)
    assert clean("here", np.array([[0, 1], [1, 2]]), 3).notes(3) == ()


@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(-3, 3)))
def test_compressed_rows_give_the_matrix_back(dense: NDArray[np.float32]) -> None:
    rows = csr_matrix(dense)
    made = sparse_rows("here", rows.data, rows.indices, rows.indptr, dense.shape)
    np.testing.assert_array_equal(made.toarray(), dense)
    assert made.dtype == np.float32


@pytest.mark.parametrize(
    ("indices", "indptr", "shape", "problem"),
    [
        ([1, 0], [0, 1, 2], (2,), "shape"),
        ([1, 0], [0, 1, 2], (-2, 2), "shape"),
        ([1, 0], [0, 2, 1], (2, 2), "rows"),
        ([1, 0], [0, 9, 9], (2, 2), "rows"),
        ([1, 2], [0, 1, 2], (2, 2), "columns"),
        ([1, -1], [0, 1, 2], (2, 2), "columns"),
        ([1], [0, 1, 2], (2, 2), "columns"),
    ],
)
def test_compressed_rows_that_make_no_sense(
    indices: list[int], indptr: list[int], shape: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(TiebreakError, match=f"here: not a matrix in compressed rows: .*{problem}"):
        sparse_rows("here", np.ones(2), np.array(indices), np.array(indptr), shape)


def test_features_are_finite() -> None:
    with pytest.raises(TiebreakError, match="here: 2 features"):
        checked_features("here", csr_matrix(np.array([[np.nan, np.inf, 1]], np.float32)))


@pytest.mark.parametrize(
    ("labels", "classes", "problem"),
    [([0, 2], 2, "label 2 of node 1"), ([0, -2], 2, "label -2"), ([-1, -1], 2, "no node"), ([0, 0], 1, "one class")],
)
def test_labels_that_make_no_sense(labels: list[int], classes: int, problem: str) -> None:
    with pytest.raises(TiebreakError, match=f"here: .*{problem}"):
        check_labels("here", np.array(labels), classes)


@pytest.mark.parametrize(
    ("train", "val", "test", "problem"),
    [
        ([0, 1], [], [2], "no val node"),
        ([0, 1], [9], [2], "val .*0 to 4"),
        ([0, 1], [4], [2], "node 4 .*val.*no label"),
        ([0, 1], [2], [2], "node 2 .* 2 times"),
        ([0], [1], [2], "no training node of class b"),
    ],
)
def test_splits_that_make_no_sense(train: list[int], val: list[int], test: list[int], problem: str) -> None:
    splits = {name: np.array(nodes, np.int64) for name, nodes in (("train", train), ("val", val), ("test", test))}
    with pytest.raises(TiebreakError, match=f"here: .*{problem}"):
        check_splits("here", splits, np.array([0, 1, 0, 1, -1]), ("a", "b"))

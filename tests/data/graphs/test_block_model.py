"""The generated graph: what its docstring promises."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.data.graphs import graph_data
from tiebreak.data.graphs.block_model import ACROSS, CLASSES, FREQUENT, RARE, SIZE, WITHIN, WORDS, make_blocks
from tiebreak.data.graphs.graph_data import load

pytestmark = pytest.mark.usefixtures("empty_cache")


def test_blocks_have_telling_neighbours() -> None:
    data = load("blocks")
    assert (data.nodes, data.classes, data.sizes) == (1000, 4, {"train": 80, "val": 300, "test": 620})
    same = data.labels[data.edges[:, 0]] == data.labels[data.edges[:, 1]]
    assert 0.6 < same.mean() < 0.8
    assert data.counts("train") == [20, 20, 20, 20]
    again = load("blocks")
    assert again.checksum == data.checksum == graph_data.checksum("blocks")
    np.testing.assert_array_equal(again.edges, data.edges)


def test_edges_and_words_are_as_frequent_as_stated() -> None:
    parts = make_blocks()
    nodes = CLASSES * SIZE
    alike = (parts.labels[parts.edges[:, 0]] == parts.labels[parts.edges[:, 1]]).sum()
    pairs_alike = CLASSES * SIZE * (SIZE - 1) / 2
    pairs_across = nodes * (nodes - 1) / 2 - pairs_alike
    for count, pairs, rate in ((alike, pairs_alike, WITHIN), (len(parts.edges) - alike, pairs_across, ACROSS)):
        assert abs(count - pairs * rate) < 5 * np.sqrt(pairs * rate)  # five standard errors
    own = parts.labels[:, None] == np.arange(WORDS)[None] * CLASSES // WORDS
    features = parts.features.toarray()
    for mean, count, rate in ((features[own].mean(), own.sum(), FREQUENT), (features[~own].mean(), (~own).sum(), RARE)):
        assert abs(mean - rate) < 5 * np.sqrt(rate / count)


def test_the_graph_never_moves() -> None:
    assert graph_data.checksum("blocks").startswith("0d1d1cc571e64e61")

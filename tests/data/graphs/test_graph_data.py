from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.real_data import need
from tiebreak.data.graphs import graph_data
from tiebreak.data.graphs.graph_data import GraphData, load
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


def test_isolated_nodes_and_empty_features_divide_nothing_by_zero(tmp_path: Path) -> None:
    data = load(folder(tmp_path))
    assert data.degrees().tolist() == [1, 2, 1, 2, 2, 2, 0]
    rows = data.normalised().toarray()
    np.testing.assert_allclose(rows.sum(1), [1, 0, 1, 1, 1, 1, 1])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows[2], [0.5, 0.5])


def test_everything_that_is_generated_has_a_checksum_of_its_own() -> None:
    assert len({graph_data.checksum(name) for name in graph_data.GENERATED}) == len(graph_data.GENERATED)


def check_cora(data: GraphData) -> None:
    assert (data.nodes, len(data.edges), data.features.shape) == (2708, 5278, (2708, 1433))
    assert data.sizes == {"train": 140, "val": 500, "test": 1000}
    assert np.bincount(data.labels).tolist() == [351, 217, 418, 818, 426, 298, 180]
    assert data.degrees().min() == 1
    assert data.official is True
    assert "connected components: 78" in data.notes


def test_cora_is_the_same_in_both_layouts() -> None:
    real = need("cora")
    plain, pickled = (load(name, real) for name in ("cora", "cora-planetoid"))
    for data in (plain, pickled):
        check_cora(data)
        assert data.checksum == graph_data.checksum(data.name, real)
    np.testing.assert_array_equal(plain.features.toarray(), pickled.features.toarray())
    np.testing.assert_array_equal(plain.labels, pickled.labels)
    np.testing.assert_array_equal(plain.edges, pickled.edges)
    for split in plain.splits:
        np.testing.assert_array_equal(plain.splits[split], pickled.splits[split])

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

from support import tiny
from tiebreak import catalog
from tiebreak.data.graphs import graph_data
from tiebreak.layers.dropout import restart_calls
from tiebreak.layers.graph import normalise_dense
from tiebreak.models.design import Graph
from tiebreak.models.gcn import GraphNetwork, MlpGraph
from tiebreak.tasks.nodes import inputs

SHAPE = Graph(nodes=26, features=2, classes=2, edges=70, entries=40)  # of the tiny graph; edges and entries differ
DESIGNS = {
    "gcn": ("symmetric", True),
    "gcn-row": ("row", True),
    "gcn-none": ("none", True),
    "gcn-no-loops": ("symmetric", False),
    "gcn-row-no-loops": ("row", False),
    "gcn-none-no-loops": ("none", False),
}


@pytest.fixture(name="given")
def _given(tmp_path: Path) -> dict[str, Tensor]:
    return graph(tmp_path)


def graph(folder: Path, key: int = 0) -> dict[str, Tensor]:
    found = inputs(graph_data.load("./graph", tiny.write_graph(folder, key=key)), normalise_features=False)
    return {name: values.double() if name == "values" else values for name, values in found.items()}


def dense_features(given: dict[str, Tensor]) -> Tensor:
    features = torch.zeros(SHAPE.nodes, SHAPE.features, dtype=torch.float64)
    features[given["rows"], given["columns"]] = given["values"]
    return features


def build(name: str) -> GraphNetwork:
    network = catalog.DESIGNS[name].network(SHAPE, {}, 3).double().eval()
    assert isinstance(network, GraphNetwork)
    torch.nn.init.normal_(network.bias1, generator=torch.Generator().manual_seed(0))
    return network


def by_hand(network: GraphNetwork, matrix: Tensor, features: Tensor) -> Tensor:
    hidden = torch.relu(matrix @ features @ network.weight1 + network.bias1)
    return matrix @ hidden @ network.weight2 + network.bias2


@pytest.mark.parametrize("name", DESIGNS)
def test_logits_are_those_of_the_formula_with_full_matrices(given: dict[str, Tensor], name: str) -> None:
    network = build(name)
    kind, self_loops = DESIGNS[name]
    edges = torch.stack([given["source"], given["target"]])
    matrix = normalise_dense(edges, SHAPE.nodes, kind, self_loops=self_loops, dtype=torch.float64)
    wanted = by_hand(network, matrix, dense_features(given))
    found = network(*given.values())
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    assert torch.isfinite(wanted).all(), "two nodes have no edge"
    leaves = list(network.parameters())
    for one, other in zip(*(torch.autograd.grad(each.sin().sum(), leaves) for each in (found, wanted)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_without_edges_it_is_a_multilayer_perceptron(given: dict[str, Tensor]) -> None:
    network = build("mlp-graph")
    assert isinstance(network, MlpGraph)
    wanted = by_hand(network, torch.eye(SHAPE.nodes, dtype=torch.float64), dense_features(given))
    torch.testing.assert_close(network(*given.values()), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [*DESIGNS, "mlp-graph"])
def test_the_edges_matter_to_all_but_the_perceptron(given: dict[str, Tensor], name: str, tmp_path: Path) -> None:
    network = build(name)
    other = {**given, **{end: graph(tmp_path, key=1)[end] for end in ("source", "target")}}
    assert torch.equal(network(*given.values()), network(*other.values())) == (name == "mlp-graph")


def test_all_have_the_same_parameters_and_the_same_beginning() -> None:
    states = [catalog.DESIGNS[name].network(SHAPE, {}, 3).state_dict() for name in (*DESIGNS, "mlp-graph")]
    for state in states:
        assert all(torch.equal(values, states[0][name]) for name, values in state.items())
    assert sum(values.numel() for values in states[0].values()) == 2 * 16 + 16 + 16 * 2 + 2


def test_weights_are_glorot_uniform_and_biases_begin_at_zero() -> None:
    cora = Graph(nodes=2708, features=1433, classes=7, edges=10556, entries=49216)
    network = catalog.DESIGNS["gcn"].network(cora, {}, 0)
    assert isinstance(network, GraphNetwork)
    assert sum(values.numel() for values in network.parameters()) == 23_063
    assert float(network.weight1.detach().abs().max()) == pytest.approx((6 / (1433 + 16)) ** 0.5, rel=1e-3)
    assert not network.bias1.any()
    assert not network.bias2.any()


def test_dropout_of_features_is_dropout_of_the_dense_matrix(given: dict[str, Tensor]) -> None:
    """Half of the entries go, the others are doubled; what is 0 stays 0."""
    network = build("mlp-graph")
    network.train()
    network.dropout_hidden.rate.zero_()
    dropped = {**given, "values": network.dropout_features(given["values"])}
    assert set((dropped["values"] / given["values"]).tolist()) <= {0.0, 2.0}
    wanted = by_hand(copy.deepcopy(network), torch.eye(SHAPE.nodes, dtype=torch.float64), dense_features(dropped))
    restart_calls(network)
    torch.testing.assert_close(network(*given.values()), wanted, rtol=1e-12, atol=1e-12)

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support import tiny
from tiebreak import catalog
from tiebreak.data.graphs import graph_data
from tiebreak.data.graphs.graph_data import GraphData
from tiebreak.errors import TiebreakError
from tiebreak.models.design import Graph
from tiebreak.plan.resolve import complete
from tiebreak.plan.runs import Run
from tiebreak.study import registry
from tiebreak.tasks.interface import TrainedOn, count, select
from tiebreak.tasks.nodes import INPUTS, Nodes, inputs, probabilities
from tiebreak.train.loop import Loop
from tiebreak.train.step import initial_state

TASK = Nodes()
OPTIONS = complete(registry.TASKS["nodes"].options, {})


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> GraphData:
    return TASK.load("./graph", tiny.write_graph(tmp_path_factory.mktemp("data")))


class Table(nn.Module):
    """Fixed logits [nodes, classes], whatever it is given."""

    def __init__(self, data: GraphData) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.randn(data.nodes, data.classes, generator=torch.Generator().manual_seed(0)))

    def forward(self, *given: Tensor) -> Tensor:
        assert len(given) == len(INPUTS)
        return self.logits


def test_the_shape_counts_edges_both_ways_and_features_that_are_not_zero(data: GraphData) -> None:
    shape = TASK.shape(data)
    assert shape == Graph(nodes=26, features=2, classes=2, edges=2 * len(data.edges), entries=data.features.nnz)
    split = TASK.split(data, "val", OPTIONS, {})
    for name, values in zip(INPUTS, shape.inputs(1), strict=True):
        assert split[name].shape == values.shape, name
        assert split[name].dtype == values.dtype, name


def test_an_example_of_training_is_the_whole_split_and_of_testing_a_node(data: GraphData) -> None:
    options = {**OPTIONS, "epoch_steps": 3}
    train, test = (TASK.split(data, name, options, {}) for name in ("train", "test"))
    assert train["node"].tolist() == [data.splits["train"].tolist()] * 3
    assert test["node"].tolist() == [[node] for node in data.splits["test"]]
    assert torch.equal(train["labels"], torch.from_numpy(data.labels)[train["node"]])
    assert TASK.sizes(data, options) == {**data.sizes, "train": 3}
    assert count(TASK, train) == 3


def test_the_graph_is_shared_by_all_examples(data: GraphData) -> None:
    split = TASK.split(data, "test", OPTIONS, {})
    some = select(TASK, split, lambda values: values[:2])
    assert all(some[name] is split[name] for name in INPUTS)
    assert some["node"].shape == some["labels"].shape == (2, 1)


def test_features_come_by_row_and_can_be_sorted_by_column(data: GraphData) -> None:
    given = inputs(data, normalise_features=False)
    dense = torch.zeros(26, 2)
    dense[given["rows"], given["columns"]] = given["values"]
    assert torch.equal(dense, torch.from_numpy(data.features.toarray()))
    assert (given["rows"].diff() >= 0).all()
    assert (given["columns"][given["order"]].diff() >= 0).all()
    sums = torch.zeros(26).index_add(0, given["rows"], inputs(data, normalise_features=True)["values"])
    assert set(sums.round(decimals=5).tolist()) <= {0.0, 1.0}, "a node without features stays so"


def test_every_edge_goes_both_ways_and_is_sorted_by_target(data: GraphData) -> None:
    given = inputs(data, normalise_features=True)
    pairs = set(zip(given["source"].tolist(), given["target"].tolist(), strict=True))
    assert pairs == {(a, b) for one, two in data.edges.tolist() for a, b in ((one, two), (two, one))}
    assert len(pairs) == len(given["source"])
    assert (given["target"].diff() >= 0).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_is_the_mean_cross_entropy_of_the_training_nodes(data: GraphData, smoothing: float) -> None:
    network, split = Table(data), TASK.split(data, "train", OPTIONS, {})
    batch = select(TASK, split, lambda values: values[:1])
    nodes = data.splits["train"]
    hypers = {"label_smoothing": torch.tensor(smoothing)} if smoothing else {}
    labels = torch.from_numpy(data.labels[nodes])
    wanted = F.cross_entropy(network.logits[nodes], labels, label_smoothing=smoothing)
    torch.testing.assert_close(TASK.loss(network, batch, torch.ones(1), hypers), wanted)


def test_outcomes_are_of_single_nodes_and_metrics_their_means(data: GraphData) -> None:
    network, split = Table(data), TASK.split(data, "test", OPTIONS, {})
    with torch.no_grad():
        outcomes = {name: values.numpy() for name, values in TASK.outcomes(network, split).items()}
    metrics, kept = TASK.score(outcomes)
    assert metrics.keys() == registry.TASKS["nodes"].metrics.keys()
    predicted = network.logits.argmax(1).numpy()
    right = predicted[data.splits["test"]] == data.labels[data.splits["test"]]
    assert metrics["accuracy"] == pytest.approx(right.mean())
    assert kept["accuracy"].tolist() == right.tolist()
    assert kept["prediction"].tolist() == predicted[data.splits["test"]].tolist()


def test_exhibits_show_the_graph_and_accuracy_by_degree(data: GraphData) -> None:
    network = Table(data)
    assert TASK.exhibits(network, data, OPTIONS, []).keys() == {"curves"}
    shown = TASK.exhibits(network, data, OPTIONS, [0])
    drawn, curve = shown["graph"], shown["curves"]
    assert drawn["positions"].shape == (26, 2)
    assert np.isfinite(drawn["positions"]).all(), "parts that no edge connects have a place too"
    assert drawn["predicted"].shape == drawn["labels"].shape == (26,)
    assert int(curve["degree_n"].sum()) == len(data.splits["test"])
    right = drawn["predicted"] == data.labels
    assert (curve["degree_y"] * curve["degree_n"]).sum() == pytest.approx(right[data.splits["test"]].sum())


def test_a_large_graph_is_not_drawn() -> None:
    data = graph_data.load("blocks")
    assert TASK.exhibits(Table(data), data, OPTIONS, [0]).keys() == {"curves"}


def test_a_node_of_the_graph_is_classified_by_number() -> None:
    data = graph_data.load("karate")
    known = TrainedOn(shape=TASK.shape(data), vocabulary=TASK.vocabulary(data), options=OPTIONS, data="karate")
    network = catalog.DESIGNS["gcn"].network(known.shape, {}, 0).eval()
    reply = TASK.answer(network, "0", known, {})
    assert sum(answer.probability or 0.0 for answer in reply.answers) == pytest.approx(1)
    assert reply.note == "node 0 has 16 neighbours; its class is Mr. Hi, in the train split"
    for wrong in ("34", "-1", "x", ""):
        with pytest.raises(TiebreakError, match="no node; the nodes of karate are 0 to 33"):
            TASK.answer(network, wrong, known, {})
    with pytest.raises(TiebreakError, match="not the graph that was trained on any more"):
        TASK.answer(network, "0", replace(known, data="blocks"), {})


def test_a_node_of_ones_own_graph_is_called_as_its_files_call_it(tmp_path: Path) -> None:
    folder = tiny.write_graph(tmp_path) / "graph"
    lines = (folder / "features.csv").read_text().splitlines()
    (folder / "features.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")  # the last node first
    data = graph_data.load(f"{folder}/")
    known = TrainedOn(shape=TASK.shape(data), vocabulary=TASK.vocabulary(data), options=OPTIONS, data=f"{folder}/")
    network = catalog.DESIGNS["gcn"].network(known.shape, {}, 0).eval()
    assert data.node_names[0] == "25"
    chances = probabilities(network, data, OPTIONS)[25]
    reply = TASK.answer(network, "0", known, {})
    assert reply.answers[0].probability == pytest.approx(float(chances.max()))
    assert reply.note is not None
    assert reply.note.startswith("node 0 has ")
    with pytest.raises(TiebreakError, match=r"'n5': no node of .*; it has 26, such as 25, 24, 23"):
        TASK.answer(network, "n5", known, {})


# bad input: what graphs may have, and what they may not


def graph_of(folder: Path, edges: str, labels: str | None = None) -> GraphData:
    tiny.write_graph(folder)
    (folder / "graph" / "edges.csv").write_text("source,target\n" + edges)
    if labels is not None:
        (folder / "graph" / "labels.csv").write_text("node,label,split\n" + labels)
    return TASK.load("./graph", folder)


@pytest.mark.parametrize(
    "design", [name for name, entry in registry.DESIGNS.items() if entry.family == "node-classifier"]
)
def test_parts_loops_repeats_and_isolated_nodes_train_without_a_division_by_zero(design: str, tmp_path: Path) -> None:
    data = graph_of(tmp_path, "0,1\n1,0\n0,1\n2,2\n3,4\n")
    assert data.edges.tolist() == [[0, 1], [3, 4]]
    for word, number in (("self-loops", "1"), ("repeated edges", "2")):
        assert any(word in note and note.endswith(number) for note in data.notes)
    assert any(note.startswith("nodes without an edge: 22") for note in data.notes)
    run = small_run(design)
    network = catalog.DESIGNS[design].network(TASK.shape(data), {}, 0)
    state = initial_state(network, run)
    losses = Loop(TASK, network, run, state).train_epoch(TASK.split(data, "train", OPTIONS, {}), lambda *_: None)
    with torch.no_grad():
        assert torch.isfinite(network.eval()(*inputs(data, normalise_features=True).values())).all()
    assert np.isfinite(losses).all()
    assert all(torch.isfinite(values).all() for values in state.params.values())


def small_run(design: str) -> Run:
    return Run.model_validate(
        {
            "design": design, "source": "none", "build": {}, "task": "nodes", "options": OPTIONS, "data": "none",
            "checksum": "none", "optimiser": {"kind": "adam"}, "setting": {}, "seed": 0, "epochs": 1, "batch": 1,
            "hypers": {name: hyper.default for name, hyper in registry.HYPERS.items()}, "comparability": 1,
            "evaluations": ({},),
        }
    )  # fmt: skip


def test_an_edge_to_a_node_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"edges.csv: line 3: there is no node '77'; nodes are those with features"):
        graph_of(tmp_path, "0,1\n1,77\n")


def test_labels_may_be_missing_but_not_of_the_nodes_of_a_split(tmp_path: Path) -> None:
    data = graph_of(tmp_path, "0,1\n", "0,x,train\n1,y,train\n2,x,val\n3,y,test\n")
    assert int((data.labels < 0).sum()) == 22
    assert "nodes without a label: 22" in data.notes
    split = TASK.split(data, "train", OPTIONS, {})
    assert (split["labels"] >= 0).all()
    with pytest.raises(TiebreakError, match=r"labels.csv: line 3: node '1' is for train, but has no label"):
        graph_of(tmp_path, "0,1\n", "0,x,train\n1,,train\n2,x,val\n3,y,test\n")


def test_a_class_without_a_training_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="no training node of class y"):
        graph_of(tmp_path, "0,1\n", "0,x,train\n1,y,val\n2,x,val\n3,y,test\n")

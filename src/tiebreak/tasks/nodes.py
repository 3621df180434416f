"""Classification of the nodes of one graph, all of which is seen while training; only labels are held out.

An example is a list of nodes with their labels, and every step looks at the whole graph:

| split       | examples                     | nodes of each                                                   |
|-------------|------------------------------|-----------------------------------------------------------------|
| train       | `epoch_steps`, all the same  | all training nodes: a step of batch 1 is full-batch training    |
| val, test   | the labelled nodes           | one                                                             |

So an epoch is `epoch_steps` steps, after which the network is evaluated and kept: 200 steps are 20 epochs of 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.data.graphs import graph_data
from tiebreak.data.graphs.graph_data import GraphData
from tiebreak.data.graphs.karate import place
from tiebreak.errors import TiebreakError
from tiebreak.models.design import Graph
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.losses import smoothed_nll, weighted
from tiebreak.tasks.reply import Answer, Reply
from tiebreak.text import printable

INPUTS = ("rows", "columns", "values", "order", "source", "target")  # of a network: see `models.design.Graph`
DRAWN = 300  # nodes of a graph that is laid out for a picture, at most
GROUPS = 6  # of nodes by their number of neighbours, at most


class Nodes:
    """The task of the `node-classifier` family: a graph in, logits [nodes, classes] out."""

    shared: frozenset[str] = frozenset(INPUTS)
    ordered: bool = False

    def load(self, name: str, data_dir: Path | None) -> GraphData:
        """The graph `name`, checked."""
        return graph_data.load(name, data_dir)

    def vocabulary(self, data: GraphData) -> dict[str, tuple[str, ...]]:
        """The names of the classes."""
        return {"classes": data.class_names}

    def with_options(self, options: Mapping[str, Scalar]) -> Nodes:
        """The same: loss and outcomes have no options."""
        return self

    def sizes(self, data: GraphData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many examples each split has: of training, as many as an epoch has steps."""
        return {**data.sizes, "train": int(options["epoch_steps"])}

    def shape(self, data: GraphData) -> Graph:
        """The graph's sizes."""
        return Graph(
            nodes=data.nodes,
            features=data.features.shape[1],
            classes=data.classes,
            edges=2 * len(data.edges),
            entries=data.features.nnz,
        )

    def split(
        self, data: GraphData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]
    ) -> Split:
        """The graph, and the split's examples: node and labels [N, k]."""
        nodes = data.splits[name]
        rows = np.tile(nodes, (int(options["epoch_steps"]), 1)) if name == "train" else nodes[:, None]
        return {
            **inputs(data, bool(options["normalise_features"])),
            "node": torch.from_numpy(rows),
            "labels": torch.from_numpy(data.labels[rows]),
        }

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The weighted mean of each example's mean of -log p(label), with label smoothing where the run has it."""
        each = smoothed_nll(_logits(network, batch), batch["labels"], hypers.get("label_smoothing"))
        return weighted(weights, each.mean(dim=1))

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """Whether each node is classified correctly, its loss, and the class it is taken for."""
        logits, labels = _logits(network, batch), batch["labels"]
        predictions = logits.argmax(dim=-1)
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return {
            "accuracy": (predictions == labels).float().mean(dim=1),
            "loss": losses.view(labels.shape).mean(dim=1),
            "prediction": predictions[:, 0].float(),
        }

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Both metrics are plain means over the nodes."""
        means = {name: float(np.mean(outcomes[name], dtype=np.float64)) for name in ("accuracy", "loss")}
        return means, dict(outcomes)

    def exhibits(
        self, network: nn.Module, data: GraphData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """Accuracy by the number of neighbours; with test examples given, the graph with the predicted classes."""
        predicted = probabilities(network, data, options).argmax(dim=1).numpy()
        shown: dict[str, Arrays] = {"curves": _by_degree(data, predicted)}
        if examples and (data.positions is not None or data.nodes <= DRAWN):
            shown["graph"] = {
                "positions": place(data.edges, data.nodes) if data.positions is None else data.positions,
                "edges": data.edges,
                "predicted": predicted,
                "labels": data.labels,
                "class_names": np.asarray(data.class_names),
            }
        return shown

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The classes of a node of the graph that the network was trained on, most likely first."""
        data = self.load(trained_on.data, None)
        if self.shape(data) != trained_on.shape:
            raise TiebreakError(f"{trained_on.data}: is not the graph that was trained on any more")
        node = _find(data, user_input)
        chances = probabilities(network, data, trained_on.options)[node].tolist()
        answers = [Answer(text=name, probability=value) for name, value in zip(data.class_names, chances, strict=True)]
        label = data.labels[node]
        split = next((split for split, nodes in data.splits.items() if node in nodes), "no")
        known_as = f"{data.class_names[label]}, in the {split} split" if label >= 0 else "not known"
        note = f"node {user_input} has {data.degrees()[node]} neighbours; its class is {known_as}"
        return Reply(answers=sorted(answers, key=lambda each: -(each.probability or 0.0)), note=note)


def _find(data: GraphData, name: str) -> int:
    """The node that a user names: as its files do, or by its number where they do not."""
    if data.node_names:
        if name not in data.node_names:
            some = ", ".join(map(printable, data.node_names[:3]))
            raise TiebreakError(f"{name!r}: no node of {data.name}; it has {data.nodes:,}, such as {some}")
        return data.node_names.index(name)
    if not name.isdecimal() or int(name) >= data.nodes:
        raise TiebreakError(f"{name!r}: no node; the nodes of {data.name} are 0 to {data.nodes - 1}")
    return int(name)


def inputs(data: GraphData, normalise_features: bool) -> dict[str, Tensor]:
    """What a network is called with, by name."""
    features = (data.normalised() if normalise_features else data.features).tocoo()
    entries = np.lexsort((features.col, features.row))
    rows, columns = (index.astype(np.int64)[entries] for index in (features.row, features.col))
    both = np.concatenate([data.edges, data.edges[:, ::-1]])
    source, target = both[np.lexsort((both[:, 0], both[:, 1]))].T
    arrays = {
        "rows": rows,
        "columns": columns,
        "values": features.data.astype(np.float32)[entries],
        "order": np.argsort(columns, kind="stable"),
        "source": source,
        "target": target,
    }
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def probabilities(network: nn.Module, data: GraphData, options: Mapping[str, Scalar]) -> Tensor:
    """Of every class for every node [nodes, classes], on the CPU."""
    device = next(network.parameters()).device
    arrays = inputs(data, bool(options["normalise_features"]))
    with torch.no_grad():
        return F.softmax(network(*(arrays[name].to(device) for name in INPUTS)), dim=1).cpu()


def _logits(network: Network, batch: Split) -> Tensor:
    """Of the nodes that the batch asks about [B, k, classes]."""
    logits = network(*(batch[name] for name in INPUTS))
    return logits.index_select(0, batch["node"].flatten()).view(*batch["node"].shape, -1)  # type: ignore[no-any-return]


def _by_degree(data: GraphData, predicted: npt.NDArray[Any]) -> Arrays:
    """The accuracy on the test nodes by their number of neighbours, in groups of nearly equal size."""
    nodes = data.splits["test"]
    degrees, right = data.degrees()[nodes], predicted[nodes] == data.labels[nodes]
    ends = np.unique(np.quantile(degrees, np.linspace(0, 1, GROUPS + 1)[1:], method="nearest"))
    group = np.searchsorted(ends, degrees)
    return {
        "degree_x": np.array([degrees[group == each].mean() for each in range(len(ends))]),
        "degree_y": np.array([right[group == each].mean() for each in range(len(ends))]),
        "degree_n": np.bincount(group, minlength=len(ends)),
        "degree_label": np.asarray(["neighbours of the node", "test accuracy"]),
        "degree_title": np.asarray("Accuracy by the number of neighbours"),
    }

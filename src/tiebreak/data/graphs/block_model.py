"""A generated graph in which the neighbours of a node say more about its class than its own features do.

1,000 nodes in 4 classes of 250. Two nodes are joined with probability 0.022 within a class and 0.003 across classes:
about 5.5 neighbours of the own class and 2.3 of others. Of 120 words a node has each with probability 0.05, and those
30 that belong to its class with probability 0.14: a node alone is guessed better than by chance, but not well. 20 nodes
of each class are for training, 300 in all for validation, the others for testing. Drawn once, from named streams.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from tiebreak.data.graphs.graph_parts import Parts
from tiebreak.data.splits import stratified
from tiebreak.streams import stream

CLASSES, SIZE = 4, 250
WITHIN, ACROSS = 0.022, 0.003  # probability of an edge
WORDS, RARE, FREQUENT = 120, 0.05, 0.14  # features, and the probability that a node has one
TRAIN, VAL = 20 * CLASSES, 300


def make_blocks() -> Parts:
    """The block model; its nodes lie in a random order, so that a number tells nothing about a class."""
    nodes = CLASSES * SIZE
    labels = np.argsort(_uniform("labels", (nodes,)), kind="stable") % CLASSES
    alike = labels[:, None] == labels[None]
    joined = np.triu(_uniform("edges", (nodes, nodes)) < np.where(alike, WITHIN, ACROSS), 1)
    own = labels[:, None] == np.arange(WORDS)[None] * CLASSES // WORDS
    features = _uniform("features", (nodes, WORDS)) < np.where(own, FREQUENT, RARE)
    sizes = (TRAIN, VAL, nodes - TRAIN - VAL)
    train, val, test = stratified(labels, sizes, stream(0, "split", "blocks"))
    return Parts(
        where="blocks",
        features=csr_matrix(features.astype(np.float32)),
        labels=labels,
        edges=np.argwhere(joined),
        splits={"train": train, "val": val, "test": test},
        split_rule="drawn with the graph, 20 training nodes of every class",
    )


def _uniform(part: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.random.Generator(np.random.Philox(stream(0, "blocks", part))).random(shape)

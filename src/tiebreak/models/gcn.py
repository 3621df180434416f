"""Graph convolution as Kipf and Welling use it: three normalisations, with and without self-loops, and no edges at all.

    H = ReLU(Â dropout(X) W1 + b1),    logits = Â dropout(H) W2 + b2

X [n, F] features, Â [n, n] as in `layers.graph`, W1 [F, hidden], W2 [hidden, classes], Glorot-uniform; biases start at
0. Dropout 0.5, on the features that are not 0: the others cannot become anything else.

| design      | Â                  | without self-loops |
|-------------|--------------------|--------------------|
| gcn         | D̃^{-1/2} Ã D̃^{-1/2} | gcn-no-loops       |
| gcn-row     | D̃^{-1} Ã           | gcn-row-no-loops   |
| gcn-none    | Ã                  | gcn-none-no-loops  |
| mlp-graph   | the identity       |                    |

All have F hidden + hidden + hidden classes + classes parameters: 23,063 for Cora at 16 hidden units.
Source: Kipf and Welling, "Semi-supervised classification with graph convolutional networks" (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.dropout import Dropout
from tiebreak.layers.graph import spread
from tiebreak.layers.sparse import Entries, multiply, starts_of
from tiebreak.models.design import Graph

DROPOUT = 0.5


class GraphNetwork(nn.Module):
    """Two layers; a design says what Â is."""

    kind: ClassVar[str]
    self_loops: ClassVar[bool] = True

    def __init__(self, shape: Graph, hidden: int = 16) -> None:
        super().__init__()
        self.nodes = shape.nodes
        self.weight1 = nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape.features, hidden)))
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.weight2 = nn.Parameter(nn.init.xavier_uniform_(torch.empty(hidden, shape.classes)))
        self.bias2 = nn.Parameter(torch.zeros(shape.classes))
        self.dropout_features, self.dropout_hidden = Dropout(DROPOUT), Dropout(DROPOUT)

    def forward(
        self, rows: Tensor, columns: Tensor, values: Tensor, order: Tensor, source: Tensor, target: Tensor
    ) -> Tensor:
        """Logits [n, classes] of all nodes."""
        mix = self.mixing(source, target, values.dtype)
        kept = self.dropout_features(values)
        features = Entries(starts_of(rows, self.nodes), columns, kept)
        transposed = Entries(starts_of(columns[order], len(self.weight1)), rows[order], kept[order])
        hidden = F.relu(mix(multiply(features, transposed, self.weight1)) + self.bias1)
        return mix(self.dropout_hidden(hidden) @ self.weight2) + self.bias2

    def mixing(self, source: Tensor, target: Tensor, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
        """The product with Â."""
        return spread(source, target, self.nodes, self.kind, self_loops=self.self_loops, dtype=dtype)


class Gcn(GraphNetwork):
    """Symmetric normalisation with self-loops."""

    kind = "symmetric"


class GcnRow(GraphNetwork):
    """Rows that sum to one: the mean over a node and its neighbours."""

    kind = "row"


class GcnNone(GraphNetwork):
    """No normalisation: the sum over a node and its neighbours."""

    kind = "none"


class GcnNoLoops(GraphNetwork):
    """Symmetric normalisation without self-loops."""

    kind, self_loops = "symmetric", False


class GcnRowNoLoops(GraphNetwork):
    """The mean over the neighbours."""

    kind, self_loops = "row", False


class GcnNoneNoLoops(GraphNetwork):
    """The sum over the neighbours."""

    kind, self_loops = "none", False


class MlpGraph(GraphNetwork):
    """No edges: every node by its own features."""

    def mixing(self, source: Tensor, target: Tensor, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
        """Nothing is mixed."""
        return nn.Identity()

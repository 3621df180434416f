"""The matrix of a graph convolution X' = σ(Â X W), and the product Â X.

    none:       Â = Ã
    symmetric:  Â = D̃^{-1/2} Ã D̃^{-1/2}     Â_ij = Ã_ij / sqrt(d_i d_j)
    row:        Â = D̃^{-1} Ã                Â_ij = Ã_ij / d_i

A [n, n] the adjacency of an undirected graph without loops, Ã = A + I with self-loops and A without, d_i = sum_j Ã_ij,
D̃ = diag(d); X [n, F] features. A node without neighbours has the row e_i with self-loops and a row of zeros without.

Only `row` has rows that sum to one. Report R4 says so of `symmetric`, whose rows sum to sum_j Ã_ij / sqrt(d_i d_j): one
for all of them if and only if every connected part of the graph is regular. On the path 0 - 1 - 2 with self-loops
(d = 2, 3, 2) they sum to 1/2 + 1/√6 = 0.908, 1/3 + 2/√6 = 1.150 and 0.908. What `symmetric` does have: it is symmetric,
and similar to `row` (it is D̃^{1/2} Â_row D̃^{-1/2}), so that its eigenvalues are real and lie in [-1, 1], and many
layers do not blow up.
Source: Kipf and Welling, "Semi-supervised classification with graph convolutional networks" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tiebreak.errors import TiebreakError, nearest
from tiebreak.layers.sparse import Entries, multiply, starts_of

KINDS = ("symmetric", "row", "none")
Edges = Tensor | Sequence[tuple[int, int]]


def normalise(
    edges: Edges, nodes: int, kind: str = "symmetric", *, self_loops: bool = True, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Â [n, n], sparse (COO) and coalesced: 2 E + n entries, never n^2.

    `edges` is an integer tensor [2, E] or a list of pairs. Each pair is an undirected edge: it counts both ways, and
    once however often and in whichever order it is given. Loops in the list are left out, so that `self_loops` alone
    says whether the graph has them, each with weight 1.
    """
    _check(kind, dtype)
    ends = _ends(edges, nodes)
    ends = ends[:, ends[0] != ends[1]]
    pairs = torch.cat([ends, ends.flip(0)], dim=1)
    if self_loops:
        pairs = torch.cat([pairs, torch.arange(nodes, device=pairs.device).expand(2, -1)], dim=1)
    flat = torch.unique(pairs[0] * nodes + pairs[1])  # sorted by row and then by column: what coalesced means
    indices = torch.stack([flat // nodes, flat % nodes])
    degrees = torch.bincount(indices[0], minlength=nodes).double()
    row, column = degrees[indices]  # none is 0: both are ends of an edge
    values = {"none": torch.ones_like(row), "symmetric": (row * column).rsqrt(), "row": row.reciprocal()}[kind]
    return torch.sparse_coo_tensor(indices, values.to(dtype), (nodes, nodes), is_coalesced=True, check_invariants=False)


def normalise_dense(
    edges: Edges, nodes: int, kind: str = "symmetric", *, self_loops: bool = True, dtype: torch.dtype = torch.float32
) -> Tensor:
    """The formulas as they stand, on a full matrix: the reference."""
    _check(kind, dtype)
    matrix = torch.zeros(nodes, nodes, dtype=dtype)
    for one, two in _ends(edges, nodes).T.tolist():
        matrix[one, two] = matrix[two, one] = 1
    matrix.fill_diagonal_(1.0 if self_loops else 0.0)
    degrees = matrix.sum(dim=1)
    if kind == "none":
        return matrix
    if kind == "row":
        return torch.diag(torch.where(degrees > 0, 1 / degrees, 0.0)) @ matrix
    root = torch.diag(torch.where(degrees > 0, degrees**-0.5, 0.0))
    return root @ matrix @ root


def propagate(matrix: Tensor, x: Tensor) -> Tensor:
    """Â X [..., n, F] of a matrix [n, n], sparse or dense, with the gradient for X [..., n, F], not for the matrix.

    F multiply-adds for each entry of a sparse matrix. Leading axes, and the runs of a vmap, become further columns of
    one product.
    """
    if not x.is_floating_point():
        raise TiebreakError(f"the features are {x.dtype}; propagation needs floating-point numbers")
    if matrix.ndim != 2 or x.ndim < 2 or matrix.shape[1] != x.shape[-2]:
        raise TiebreakError(
            f"a matrix {list(matrix.shape)} does not fit features {list(x.shape)}; "
            "they must be [n, n] and [..., n, features]"
        )
    if matrix.dtype != x.dtype:
        raise TiebreakError(f"the matrix is {matrix.dtype} and the features are {x.dtype}; they must be the same")
    if not matrix.is_sparse:
        return matrix @ x
    if x.ndim == 2:
        return _product(matrix, x)
    columns = x.movedim(-2, 0)
    return _product(matrix, columns.flatten(1)).view_as(columns).movedim(0, -2)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Â as what can be traced and is shared by many runs: Â x = left * (A x' + [x']) with x' = right * x.

    symmetric: left = right = d^{-1/2}; row: left = 1/d; none: neither. Nodes without neighbours have the factor 0.
    """

    edges: Entries
    self_loops: bool
    left: Tensor | None  # [n, 1]
    right: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """Â x [n, F]."""
        x = x if self.right is None else self.right * x
        total = multiply(self.edges, self.edges, x)  # A is its own transpose
        total = total + x if self.self_loops else total
        return total if self.left is None else self.left * total


def spread(
    source: Tensor, target: Tensor, nodes: int, kind: str, *, self_loops: bool, dtype: torch.dtype = torch.float32
) -> Spread:
    """The product with `normalise`'s matrix, from edges both ways, each once, without loops, sorted by target [2E]."""
    _check(kind, dtype)
    starts = starts_of(target, nodes)
    degrees = (starts.diff() + int(self_loops)).to(dtype)[:, None]
    scale = torch.where(degrees > 0, degrees ** (-0.5 if kind == "symmetric" else -1.0), 0.0)
    return Spread(
        edges=Entries(starts, source, None),
        self_loops=self_loops,
        left=None if kind == "none" else scale,
        right=scale if kind == "symmetric" else None,
    )


class _Propagate(torch.autograd.Function):
    """Sparse times dense, [n, n] times [n, F]. Torch's own has no vmap rule, and none for its gradient at all."""

    @staticmethod
    def forward(matrix: Tensor, x: Tensor) -> Tensor:
        product: Tensor = torch.sparse.mm(matrix, x)
        return product

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[None, Tensor]:
        return None, _product(ctx.saved_tensors[0].t(), above)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int | None], matrix: Tensor, x: Tensor) -> tuple[Tensor, int]:
        if in_dims[0] is not None or in_dims[1] is None:
            raise TiebreakError(
                "runs that train together share the graph: only the features may differ from run to run"
            )
        x = x.movedim(in_dims[1], 1)  # the runs beside the columns
        return _product(matrix, x.flatten(1)).view_as(x), 1


def _product(matrix: Tensor, x: Tensor) -> Tensor:
    return _Propagate.apply(matrix, x)  # type: ignore[no-any-return, no-untyped-call]


def _check(kind: str, dtype: torch.dtype) -> None:
    if kind not in KINDS:
        raise TiebreakError(f"unknown normalisation {kind!r}: {nearest(kind, KINDS)}")
    if not dtype.is_floating_point:
        raise TiebreakError(f"a normalised graph needs floating-point numbers, not {dtype}")


def _ends(edges: Edges, nodes: int) -> Tensor:
    """The edges as an int64 tensor [2, E], checked."""
    if nodes < 1:
        raise TiebreakError(f"a graph needs at least one node, not {nodes}")
    if not isinstance(edges, Tensor):
        if any(len(pair) != 2 for pair in edges):
            raise TiebreakError("a list of edges must hold pairs of nodes")
        edges = torch.tensor(edges, dtype=None if edges else torch.int64).view(-1, 2).T
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise TiebreakError(f"edges must be a tensor [2, edges] or a list of pairs, not {list(edges.shape)}")
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise TiebreakError(f"edges are {edges.dtype}; nodes are numbered by integers")
    ends = edges.long()
    wrong = ends[(ends < 0) | (ends >= nodes)]
    if wrong.numel():
        raise TiebreakError(f"an edge names node {int(wrong[0])}, and the {nodes} nodes are numbered 0 to {nodes - 1}")
    return ends

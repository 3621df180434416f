from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.errors import TiebreakError
from tiebreak.layers.graph import KINDS, normalise, normalise_dense, propagate

few = settings(deadline=None, max_examples=25)
PATH = [(0, 1), (1, 2)]
Graph = tuple[int, list[tuple[int, int]]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Some edges twice, some in both orders, loops, and nodes without any edge."""
    nodes = draw(st.integers(1, 9))
    ends = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(ends, ends), max_size=20))


def sparse(graph: Graph, kind: str, self_loops: bool) -> Tensor:
    return normalise(graph[1], graph[0], kind, self_loops=self_loops, dtype=torch.float64)


@few
@given(graphs(), st.sampled_from(KINDS), st.booleans())
def test_sparse_and_dense_are_the_same_matrix(graph: Graph, kind: str, self_loops: bool) -> None:
    nodes, edges = graph
    matrix = sparse(graph, kind, self_loops)
    dense = normalise_dense(edges, nodes, kind, self_loops=self_loops, dtype=torch.float64)
    assert torch.allclose(matrix.to_dense(), dense, rtol=0, atol=1e-15)
    assert matrix.values().all()
    again = torch.sparse_coo_tensor(matrix.indices(), matrix.values(), matrix.shape, check_invariants=True).coalesce()
    assert matrix.is_coalesced()
    assert torch.equal(matrix.indices(), again.indices())
    as_tensor = torch.tensor(edges, dtype=torch.int32).view(-1, 2).T
    assert torch.equal(
        normalise(as_tensor, nodes, kind, self_loops=self_loops, dtype=torch.float64).to_dense(), matrix.to_dense()
    )


@few
@given(graphs(), st.booleans())
def test_rows_of_row_sum_to_one(graph: Graph, self_loops: bool) -> None:
    nodes, edges = graph
    joined = {node for one, two in edges if one != two for node in (one, two)}
    wanted = torch.tensor([float(self_loops or node in joined) for node in range(nodes)], dtype=torch.float64)
    assert torch.allclose(sparse(graph, "row", self_loops).to_dense().sum(1), wanted, rtol=0, atol=1e-14)


@few
@given(graphs(), st.booleans())
def test_symmetric_is_symmetric_with_eigenvalues_within_one(graph: Graph, self_loops: bool) -> None:
    matrix = sparse(graph, "symmetric", self_loops).to_dense()
    assert torch.equal(matrix, matrix.T)
    values = torch.linalg.eigvalsh(matrix)
    assert float(values.abs().max()) <= 1 + 1e-12
    if self_loops or matrix.any():
        assert math.isclose(float(values.max()), 1)  # with the eigenvector sqrt(d)
    if self_loops:
        assert float(values.min()) > -1 + 1e-6  # no part of the graph is two-sided any more
    degrees = sparse(graph, "none", self_loops).to_dense().sum(1).clamp(min=1)
    similar = degrees.sqrt()[:, None] * sparse(graph, "row", self_loops).to_dense() / degrees.sqrt()
    assert torch.allclose(similar, matrix, rtol=0, atol=1e-14)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        (7, [(i, (i + 1) % 7) for i in range(7)]),  # a ring
        (5, [(i, j) for i in range(5) for j in range(i)]),  # everybody with everybody
        (6, [(i, j) for i in range(3) for j in range(3, 6)]),  # two sides
        (5, [(0, 1), (2, 3), (3, 4), (4, 2)]),  # parts of different degree, each regular
    ],
)
def test_on_regular_graphs_symmetric_rows_sum_to_one(
    nodes: int, edges: list[tuple[int, int]], self_loops: bool
) -> None:
    sums = sparse((nodes, edges), "symmetric", self_loops).to_dense().sum(1)
    assert torch.allclose(sums, torch.ones(nodes, dtype=torch.float64), rtol=0, atol=1e-14)


def test_on_the_path_they_do_not() -> None:
    sums = sparse((3, PATH), "symmetric", True).to_dense().sum(1).tolist()
    end, middle = 1 / 2 + 1 / math.sqrt(6), 1 / 3 + 2 / math.sqrt(6)
    assert sums == pytest.approx([end, middle, end], abs=1e-15)
    assert [round(each, 3) for each in sums] == [0.908, 1.150, 0.908]


@few
@given(graphs(), st.booleans())
def test_symmetric_rows_sum_to_one_only_if_every_part_is_regular(graph: Graph, self_loops: bool) -> None:
    adjacency = sparse(graph, "none", self_loops).to_dense()
    degrees = adjacency.sum(1)
    regular = bool((degrees > 0).all()) and all(degrees[i] == degrees[j] for i, j in adjacency.nonzero().tolist())
    sums = sparse(graph, "symmetric", self_loops).to_dense().sum(1)
    assert torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=1e-9) == regular


def test_an_edge_counts_both_ways_once_and_loops_are_asked_for() -> None:
    given = [(0, 1), (1, 0), (0, 1), (2, 2)]
    without = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert normalise(given, 3, "none", self_loops=False).to_dense().tolist() == without
    assert normalise(given, 3, "none").to_dense().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert normalise([], 2, "row", self_loops=False).to_dense().tolist() == [[0, 0], [0, 0]]
    assert normalise(torch.empty(2, 0, dtype=torch.int64), 2).to_dense().tolist() == [[1, 0], [0, 1]]


def test_it_never_holds_the_full_matrix() -> None:
    nodes = 1_000_001
    ends = torch.arange(nodes)
    matrix = normalise(torch.stack([ends, ends.roll(1)]), nodes)
    assert matrix.values().numel() == 3 * nodes
    assert torch.allclose(propagate(matrix, torch.ones(nodes, 1)), torch.ones(()))


@few
@given(graphs(), st.sampled_from(KINDS), st.booleans(), st.sampled_from([(), (2,), (3, 2)]))
def test_propagation_is_the_product_with_its_gradient(
    graph: Graph, kind: str, self_loops: bool, lead: tuple[int, ...]
) -> None:
    matrix = sparse(graph, kind, self_loops)
    x = torch.randn(*lead, graph[0], 5, dtype=torch.float64, requires_grad=True)
    found, expected = [], matrix.to_dense() @ x
    above = torch.randn_like(expected)
    for out in (propagate(matrix, x), propagate(matrix.to_dense(), x), expected):
        found.append([out, *torch.autograd.grad(out, x, above)])
    for form in found[:2]:
        for one, two in zip(form, found[2], strict=True):
            assert one.shape == two.shape
            assert torch.allclose(one, two, rtol=0, atol=1e-12)


def test_runs_together_are_each_run_alone_vmapped_and_traced() -> None:
    matrix = normalise([*PATH, (2, 4), (0, 4)], 5, "row", dtype=torch.float64)
    x = torch.randn(5, 3, dtype=torch.float64)
    weights = torch.randn(4, 3, 2, dtype=torch.float64)

    def loss(weight: Tensor, x: Tensor) -> Tensor:
        return propagate(matrix, propagate(matrix, x) @ weight).sin().sum()

    for dims, inputs in ((None, x), (0, torch.randn(4, 5, 3, dtype=torch.float64))):
        step = vmap(grad(loss, argnums=(0, 1)), in_dims=(0, dims))
        alone = [grad(loss, argnums=(0, 1))(w, x if dims is None else inputs[run]) for run, w in enumerate(weights)]
        for together in (step(weights, inputs), make_fx(step)(weights, inputs)(weights, inputs)):
            for got, expected in zip(together, zip(*alone, strict=True), strict=True):
                assert torch.allclose(got, torch.stack(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", [normalise, normalise_dense])
def test_graphs_that_cannot_be_are_named(form: object) -> None:
    assert callable(form)
    for edges, message in (
        ([(0, 3)], "an edge names node 3, and the 3 nodes are numbered 0 to 2"),
        (torch.tensor([[0], [-1]]), "an edge names node -1"),
        (torch.tensor([0, 1]), r"edges must be a tensor \[2, edges\] or a list of pairs, not \[2\]"),
        (torch.tensor([[0, 1], [1, 2], [2, 0]]), r"not \[3, 2\]"),
        (torch.tensor([[0.0], [1.0]]), r"edges are torch\.float32"),
        ([(0, 1.5)], r"edges are torch\.float32"),
        ([(0, 1), (0, 1, 2)], "must hold pairs of nodes"),
    ):
        with pytest.raises(TiebreakError, match=message):
            form(edges, 3)
    with pytest.raises(TiebreakError, match="at least one node, not 0"):
        form([], 0)
    with pytest.raises(TiebreakError, match="unknown normalisation 'rows': did you mean 'row'"):
        form(PATH, 3, "rows")
    with pytest.raises(TiebreakError, match=r"floating-point numbers, not torch\.int64"):
        form(PATH, 3, dtype=torch.int64)


def test_features_that_do_not_fit_are_named() -> None:
    matrix = normalise(PATH, 3)
    with pytest.raises(TiebreakError, match=r"the features are torch\.int64"):
        propagate(matrix, torch.ones(3, 2, dtype=torch.int64))
    for wrong in (torch.ones(2, 3), torch.ones(3)):
        with pytest.raises(TiebreakError, match=r"a matrix \[3, 3\] does not fit features"):
            propagate(matrix, wrong)
    with pytest.raises(TiebreakError, match=r"the matrix is torch\.float32 and the features are torch\.float64"):
        propagate(matrix, torch.ones(3, 2, dtype=torch.float64))

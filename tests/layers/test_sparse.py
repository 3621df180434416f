from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.layers.graph import KINDS, normalise_dense, spread
from tiebreak.layers.sparse import Entries, multiply, starts_of

few = settings(deadline=None, max_examples=25)


def both(dense: Tensor, weights: Tensor | None) -> tuple[Entries, Entries]:
    """The entries of a matrix of 0 and 1, and of its transpose; the weights are those of the entries by row."""
    rows, columns = dense.nonzero(as_tuple=True)
    order = columns.argsort(stable=True)
    own = Entries(starts_of(rows, dense.shape[0]), columns, weights)
    back = Entries(starts_of(columns[order], dense.shape[1]), rows[order], None if weights is None else weights[order])
    return own, back


def full(dense: Tensor, weights: Tensor) -> Tensor:
    return dense.masked_scatter(dense.bool(), weights)


@st.composite
def matrices(draw: st.DrawFn) -> Tensor:
    """Places of entries; whole rows and columns may be empty."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    sizes = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    return (torch.rand(sizes, generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0]))).double()


@few
@given(matrices(), st.booleans())
def test_product_and_gradient_are_those_of_the_dense_matrix(dense: Tensor, weighted: bool) -> None:
    weights = torch.arange(1.0, 1.0 + int(dense.sum()), dtype=torch.float64)
    own, back = both(dense, weights if weighted else None)
    matrix = full(dense, weights) if weighted else dense
    x = torch.randn(dense.shape[1], 3, dtype=torch.float64)
    torch.testing.assert_close(multiply(own, back, x), matrix @ x)
    gradient = grad(lambda x: multiply(own, back, x).square().sum())(x)
    torch.testing.assert_close(gradient, 2 * matrix.T @ matrix @ x)


@few
@given(matrices(), st.sampled_from(["x", "weights", "x and weights"]))
def test_many_runs_are_each_run_whatever_they_share(dense: Tensor, own: str) -> None:
    entries = int(dense.sum())
    x, weights = torch.randn(4, dense.shape[1], 3), torch.rand(4, entries)

    def loss(x: Tensor, weights: Tensor) -> Tensor:
        return multiply(*both(dense, weights), x).square().sum()

    axes = (0 if "x" in own else None, 0 if "weights" in own else None)
    given_ = (x if "x" in own else x[0], weights if "weights" in own else weights[0])
    together = vmap(grad(loss), in_dims=axes)(*given_)
    for run in range(4):
        alone = grad(loss)(x[run] if "x" in own else x[0], weights[run] if "weights" in own else weights[0])
        torch.testing.assert_close(together[run], alone)


def test_it_can_be_traced() -> None:
    dense = (torch.rand(5, 4, generator=torch.Generator().manual_seed(1)) < 0.5).float()
    weights, x = torch.rand(3, int(dense.sum())), torch.randn(3, 4, 2)
    own, back = both(dense, None)

    def together(weights: Tensor, x: Tensor) -> Tensor:
        def one(weights: Tensor, x: Tensor) -> Tensor:
            order = dense.nonzero(as_tuple=True)[1].argsort(stable=True)
            return multiply(own._replace(weights=weights), back._replace(weights=weights[order]), x).sum()

        found: Tensor = vmap(grad(one, argnums=1))(weights, x)
        return found

    traced = make_fx(together)(weights, x)
    torch.testing.assert_close(traced(weights, x), together(weights, x))


@few
@given(st.integers(1, 9), st.integers(0, 99), st.sampled_from(KINDS), st.booleans())
def test_spreading_is_the_product_with_the_normalised_matrix(nodes: int, key: int, kind: str, self_loops: bool) -> None:
    """Isolated nodes, graphs in parts and graphs without an edge included; the gradient too."""
    generator = torch.Generator().manual_seed(key)
    joined = torch.triu(torch.rand(nodes, nodes, generator=generator) < 0.25, 1)
    target, source = (joined | joined.T).nonzero(as_tuple=True)
    matrix = normalise_dense(joined.nonzero().T, nodes, kind, self_loops=self_loops, dtype=torch.float64)
    product = spread(source, target, nodes, kind, self_loops=self_loops, dtype=torch.float64)
    x = torch.randn(nodes, 3, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(product(x), matrix @ x, rtol=1e-12, atol=1e-12)
    gradient = grad(lambda x: product(x).square().sum())(x)
    torch.testing.assert_close(gradient, 2 * matrix.T @ matrix @ x, rtol=1e-12, atol=1e-12)

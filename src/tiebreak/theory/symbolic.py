"""Symbolic cost formulas of layers, for the forward pass on one example or one sequence.

Every function takes sympy symbols (or numbers) and returns `Costs`; `network_costs` adds them up. Conventions:

    parameters      trained numbers
    multiply_adds   of products: matrices, convolutions, the two products of attention, recurrences, sparse entries. One
                    is two floating-point operations, so that the count of `measure` is twice this. Elementwise work is
                    not counted, here or there: biases, activation functions, softmax, pooling, and the products that
                    make Taylor features.
    activations     numbers that the forward pass keeps for the backward pass. A layer keeps its input (which is also
                    what the ReLU before it needs), pooling also the index of each maximum.
    state           numbers carried along when a sequence is processed one element at a time
"""

# ruff: noqa: E741  # O and I are sizes
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sympy  # type: ignore[import-untyped]

Expr = Any  # a sympy expression
TAYLOR_CHUNK = 256  # `tiebreak.layers.taylor` splits causal sequences into chunks of this length


class Costs(NamedTuple):
    """The four costs of a layer or net, as sympy expressions."""

    parameters: Expr = sympy.Integer(0)
    multiply_adds: Expr = sympy.Integer(0)
    activations: Expr = sympy.Integer(0)
    state: Expr = sympy.Integer(0)


class Nearest(sympy.Function):  # type: ignore[misc]
    """The nearest whole number, halves to even: Python's round."""

    @classmethod
    def eval(cls, x: Expr) -> Expr:
        """Rounded where x is a number."""
        return sympy.Integer(round(x)) if x.is_Rational else None


def symbol(name: str) -> Expr:
    """The symbol of a size: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)


def evaluate(expression: Expr, sizes: Mapping[str, int]) -> int:
    """The expression as a number."""
    values = {symbol(name): sympy.Integer(size) for name, size in sizes.items()}
    return int(sympy.sympify(expression).subs(values).doit())


def total(*layers: Costs) -> Costs:
    """The costs of layers in sequence."""
    return Costs(*(sympy.Add(*column) for column in zip(*layers, strict=True)))


def feature_size(d: Expr, terms: Expr, symmetric: bool = True) -> Expr:
    """C(D + K - 1, K - 1) multisets of fewer than K indices, or the sum of D^n ordered tuples."""
    if symmetric:
        return sympy.binomial(d + terms - 1, terms - 1)
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    return sympy.Sum(d**n, (n, 0, terms - 1))


# attention


def attention(L: Expr, D: Expr) -> Costs:
    """Q K^T and P V, L^2 D each; the kernel keeps q, k, v, the result and a sum for each row, never a weight."""
    return Costs(multiply_adds=2 * D * L**2, activations=L * (4 * D + 1), state=2 * D * L)


def attention_naive(L: Expr, D: Expr) -> Costs:
    """The same products, but the L x L weights are kept: of scaled q, k and v, one each."""
    return Costs(multiply_adds=2 * D * L**2, activations=L**2 + 3 * D * L, state=2 * D * L)


def taylor(L: Expr, D: Expr, V: Expr, K: Expr) -> Costs:
    """Phi(K)^T [V, 1] and Phi(Q) times that, L M (V + 1) each; kept are q, k, v, the result and the normaliser."""
    size = feature_size(D, K)
    return Costs(multiply_adds=2 * L * (V + 1) * size, activations=L * (2 * D + 2 * V + 1), state=(V + 1) * size)


def taylor_causal(L: Expr, D: Expr, V: Expr, K: Expr) -> Costs:
    """Within a chunk of c the weights themselves, c^2 (D + V + 1); the first reads no state, the last adds to none."""
    size, c = feature_size(D, K), TAYLOR_CHUNK
    within = sympy.floor(L / c) * c**2 + sympy.Mod(L, c) ** 2
    across = (L - sympy.Min(L, c)) + c * (sympy.ceiling(L / c) - 1)
    return taylor(L, D, V, K)._replace(multiply_adds=within * (D + V + 1) + across * (V + 1) * size)


def taylor_full(L: Expr, D: Expr, V: Expr, K: Expr) -> Costs:
    """Ordered features, held for all L: kept are those of Q and K, what made them (K >= 3), [V, 1], state, sums."""
    size, lower = (feature_size(D, terms, symmetric=False) for terms in (K, K - 1))
    kept = 2 * L * (size + lower + D) + (V + 1) * (2 * L + size)
    return Costs(multiply_adds=2 * L * (V + 1) * size, activations=kept, state=(V + 1) * size)


def single_head(L: Expr, d: Expr) -> Costs:
    """Three projections of d^2 each, then attention of width d."""
    inner = attention(L, d)
    return inner._replace(
        parameters=3 * d**2,
        multiply_adds=3 * L * d**2 + inner.multiply_adds,
        activations=L * (5 * d + 1),  # the input too
    )


def multi_head(L: Expr, d: Expr, h: Expr) -> Costs:
    """h times attention of width d / h: the same, but h softmaxes and their sums."""
    single = single_head(L, d)
    return single._replace(activations=L * (5 * d + h))


def bilinear(L: Expr, T: Expr, Q: Expr, D: Expr, O: Expr) -> Costs:
    """z = W q, T L D for the scores and as much for the context, then [q; c] to the output."""
    return Costs(
        parameters=Q * D + O * (Q + D + 1),
        multiply_adds=T * (Q * D + 2 * L * D + O * (Q + D)),
        activations=T * (Q + D + L + (Q + D) + O) + L * D,
        state=L * D,
    )


def pixels(H: Expr, W: Expr) -> Costs:
    """Attention of width 1 over H W pixels."""
    return attention(H * W, sympy.Integer(1))._replace(activations=3 * H * W, state=sympy.Integer(0))


# other layers


def side(size: Expr, kernel: Expr, stride: Expr = 1, padding: Expr = 0) -> Expr:
    """Outputs along one side; `formulas.conv_size` for numbers."""
    return sympy.floor((size + 2 * padding - kernel) / sympy.sympify(stride)) + 1


def linear(I: Expr, O: Expr, *, bias: bool = True) -> Costs:
    """One row."""
    return Costs(parameters=I * O + (O if bias else 0), multiply_adds=I * O, activations=sympy.sympify(I))


class Kernel(NamedTuple):
    """M x N, moved by s, over an image padded by z."""

    M: Expr
    N: Expr
    s: Expr = 1
    z: Expr = 0


def conv2d(C: Expr, H: Expr, W: Expr, O: Expr, kernel: Kernel, *, bias: bool = True) -> Costs:
    """O filters of C x M x N at every place of the output."""
    M, N, s, z = kernel
    weights = O * C * M * N
    places = side(H, M, s, z) * side(W, N, s, z)
    return Costs(parameters=weights + (O if bias else 0), multiply_adds=weights * places, activations=C * H * W)


def max_pool(C: Expr, H: Expr, W: Expr) -> Costs:
    """2 x 2, which keeps its input and the index of every maximum."""
    return Costs(activations=C * (H * W + sympy.floor(H / 2) * sympy.floor(W / 2)))


def lstm(L: Expr, I: Expr, H: Expr) -> Costs:
    """Four gates. The plain form keeps them, c and tanh(c) of each step and h of all but the last; torch's, its own."""
    return _recurrent(L, I, H, gates=4)._replace(activations=L * I + H * (7 * L - 1), state=2 * H)


def rnn(L: Expr, I: Expr, H: Expr) -> Costs:
    """One gate; kept are the inputs and every h, the first included."""
    return _recurrent(L, I, H, gates=1)._replace(activations=L * I + H * (L + 1), state=H)


def _recurrent(L: Expr, I: Expr, H: Expr, *, gates: int) -> Costs:
    return Costs(parameters=gates * H * (I + H + 2), multiply_adds=gates * L * H * (I + H))


def graph(n: Expr, E: Expr, F: Expr, G: Expr) -> Costs:
    """X W, then G multiply-adds for each of the 2 E + n entries of the matrix."""
    entries = 2 * E + n
    return Costs(parameters=F * G, multiply_adds=n * F * G + entries * G, activations=n * F)

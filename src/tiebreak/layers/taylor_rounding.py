"""How far rounding can take Taylor attention that is computed with features, and what is done about it.

    p(q . k) = phi(q) . phi(k) is a sum of terms of either sign whose sizes add up to at most p(|q| |k|)
    error of a weight <= u p(|s| |q| |k|),   every weight >= m,   so that results are off by about u p(|s| |q| |k|) / m

u half the spacing of numbers at 1, s the scale, m the least value of p: 1/2 for three terms, 0.27 for five. Orthogonal
q and k of large norm come near the bound: at |s| |q| |k| = 4,700 three terms in float32 were off by 0.14.
`naive` has no such error. An even number of terms has no least value, and warns.
"""

from __future__ import annotations

from math import factorial

import torch
from torch import Tensor

from tiebreak.layers.taylor_forms import How, polynomial

LIMIT = 2**-6  # of the bound, from which on sums are kept in float64; results are off by a tenth of it, mostly
FAR = 2**-2  # of the bound, from which on a result is no number where nothing else can be done
NAIVE_TOO = 1e18  # of the bound in float64, from which on weights of `naive` may leave float32


_known: dict[int, float] = {}  # torch.compile warns of functools.cache


def least(terms: int) -> float:
    """The least value of p for an odd number of terms. There p' = 0, and p' is p with one term less.

    >>> [round(least(terms), 4) for terms in (1, 3, 5)]
    [1.0, 0.5, 0.2704]
    """
    if terms not in _known:
        _known[terms] = 1.0 if terms == 1 else _lowest(terms)
    return _known[terms]


def _lowest(terms: int) -> float:
    low, high = -2.0 * terms, 0.0  # p' has one root, and is negative below it
    for _ in range(100):
        middle = (low + high) / 2
        if sum(middle**n / factorial(n) for n in range(terms - 1)) < 0:
            low = middle
        else:
            high = middle
    return low ** (terms - 1) / factorial(terms - 1)


def bound(q: Tensor, k: Tensor, may: Tensor | None, how: How, kept: torch.dtype | None = None) -> Tensor:
    """How far rounding can take a result, relative to the values: one number [1] for all queries and the keys seen."""
    kept = how.kept if kept is None else kept
    queries, keys = (torch.linalg.vector_norm(each.detach().to(kept), dim=-1) for each in (q, k))
    keys = keys if may is None else keys.masked_fill(~may, 0.0)
    most = queries.amax().view(1) * keys.amax().view(1)  # vmap over no runs cannot multiply single numbers
    return polynomial(most * abs(how.scale), how.terms) * (torch.finfo(kept).eps / 2 / least(how.terms))

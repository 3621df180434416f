"""How Taylor attention is computed: monomials, the scan over chunks, and a gradient that keeps no states.

    N_i = sum_{j<=i} p(q_i . k_j) [v_j, 1],   p(x) = sum_{n<terms} x^n / n!
        = sum_{j<=i in the chunk} p(q_i . k_j) [v_j, 1]  +  m(q_i)^T W S,   S = sum_{j before it} m(k_j) [v_j, 1]^T

q_i, k_j [D], already scaled; v_j [Dv]; m(x) [M] the monomials of degree 0 to terms - 1, one per multiset of indices,
W their weights 1 / (n_1! ... n_D!); S [M, Dv + 1] the state; N_i [Dv + 1] the sums, whose last entry is the normaliser.
Inside a chunk the polynomial of the scores is cheaper than features and exact; from chunk to chunk only S travels.
Monomials lie as [..., M, C], one row each, so that picking rows copies whole rows.

The gradient needs the state before every chunk. Kept, these would be L / C copies of S; here one pass forwards builds
them again (for q), and one pass backwards accumulates G = sum_{i after the chunk} m(q_i) dN_i^T (for k and v).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import comb, prod
from typing import Any

import torch
from torch import Tensor

from tiebreak.errors import TiebreakError


@dataclass(frozen=True)
class Tables:
    """Monomial a of degree n + 2 is x[first[n][a]] times monomial rest[n][a] of one degree less; weight [M, 1]."""

    first: tuple[Tensor, ...]
    rest: tuple[Tensor, ...]
    weight: Tensor


@dataclass(frozen=True)
class How:
    """What all forms need to know besides their tensors."""

    terms: int
    scale: float
    causal: bool
    chunk: int
    kept: torch.dtype  # of the sums


ROOM = 2**19  # numbers that a core's cache has room for
MANY = 2**15  # features, from which on other rules hold
_known: dict[tuple[int, int, torch.device], Tables] = {}


def size_of(d: int, terms: int) -> int:
    """How many monomials of degree under `terms` there are: C(d + terms - 1, terms - 1), of a symbolic d too."""
    size = 1
    for degree in range(1, terms):
        size = size * (d + degree) // degree
    return size


def tables(d: int, terms: int, device: torch.device) -> Tables:
    """The tables of `d` variables and degrees under `terms`; kept, so that a captured graph copies nothing."""
    found = None if _takes_no_real() else _known.get((d, terms, device))
    if found is None:
        with torch.inference_mode(False):  # built while evaluating, used while training
            found = _build(d, terms, device)
        if type(found.weight) is Tensor:  # not a fake one, which would outlive its mode
            _known[d, terms, device] = found
    return found


def _takes_no_real() -> bool:
    """Whether tensors are fake, without data, and may not meet those that were there before."""
    if torch.compiler.is_compiling():  # it cannot trace the question, and lifts them
        return False
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
    return mode is not None and not mode.allow_non_fake_inputs


def _build(d: int, terms: int, device: torch.device) -> Tables:
    # In lexicographic order the multisets of one degree less that begin at i or later are a suffix: from `starts[i]`.
    firsts, rests = [], []
    leading, times = torch.arange(d, device=device), torch.ones(d, dtype=torch.float64, device=device)
    weight = times
    weights = [times[:1], weight][:terms]
    starts = list(range(d))
    for degree in range(2, terms):
        below = comb(d + degree - 2, degree - 1)
        first = torch.cat([torch.full((below - start,), index, device=device) for index, start in enumerate(starts)])
        rest = torch.cat([torch.arange(start, below, device=device) for start in starts])
        times = torch.where(leading[rest] == first, times[rest] + 1, 1.0)  # how often the first index occurs
        weight = weight[rest] / times
        firsts.append(first)
        rests.append(rest)
        weights.append(weight)
        leading = first
        starts = [sum(below - each for each in starts[:index]) for index in range(d)]
    return Tables(tuple(firsts), tuple(rests), torch.cat(weights).unsqueeze(-1))


def degrees(x: Tensor, terms: int, table: Tables) -> list[Tensor]:
    """The monomials of x [..., D, C] by degree: [..., M_n, C] each."""
    found = [torch.ones_like(x[..., :1, :]), x][:terms]
    for first, rest in zip(table.first[: terms - 2], table.rest, strict=False):
        found.append(x.index_select(-2, first) * found[-1].index_select(-2, rest))
    return found


def monomials(x: Tensor, terms: int, table: Tables) -> Tensor:
    """All of them: [..., M, C]."""
    return torch.cat(degrees(x, terms, table), dim=-2)


def pull_back(x: Tensor, gradient: Tensor, terms: int, table: Tables) -> Tensor:
    """The gradient of x [..., D, C] from that of its monomials [..., M, C], which is overwritten."""
    if terms == 1:
        return torch.zeros_like(x)
    below = degrees(x, max(terms - 1, 2), table)
    parts = list(torch.split(gradient, [1, x.shape[-2], *(len(first) for first in table.first)], dim=-2))
    total = torch.zeros_like(x)
    for degree in range(terms - 1, 1, -1):
        first, rest = table.first[degree - 2], table.rest[degree - 2]
        total.index_add_(-2, first, parts[degree] * below[degree - 1].index_select(-2, rest))
        parts[degree - 1].index_add_(-2, rest, parts[degree] * x.index_select(-2, first))
    return total.add_(parts[1])


def polynomial(x: Tensor, terms: int) -> Tensor:
    """p(x), by Horner's rule: 1 + x (1 + x/2 (1 + x/3 ...))."""
    total = torch.ones_like(x) if terms == 1 else (x if terms == 2 else x / (terms - 1)) + 1
    for degree in range(terms - 2, 0, -1):
        total = (total * (x / degree if degree > 1 else x)).add_(1)
    return total


def wide(dtype: torch.dtype, size: int = 1) -> torch.dtype:
    """What sums over `size` features are kept in: float32 at least.

    Monomials of high degree in many variables cancel: at D = 64 and terms = 5 float32 loses 2e-5 of a result, so that
    the features of float32 inputs are float64 from 2^15 on (where D = 32 and terms = 5 lost 6e-6).
    """
    return torch.float64 if dtype == torch.float32 and size > MANY else torch.promote_types(dtype, torch.float32)


@dataclass(frozen=True)
class _Chunks:
    """Reads a stretch of each tensor: wide, scaled, masked, with the column of ones."""

    q: Tensor
    k: Tensor
    v: Tensor
    may: Tensor | None
    how: How

    def queries(self, at: slice) -> Tensor:
        return self.q[..., at, :].to(self.how.kept) * self.how.scale

    def keys(self, at: slice) -> Tensor:
        return self.hide(self.k[..., at, :].to(self.how.kept), at)

    def values(self, at: slice) -> Tensor:
        v = self.v[..., at, :].to(self.how.kept)
        return self.hide(torch.cat([v, torch.ones_like(v[..., :1])], dim=-1), at)

    def hide(self, x: Tensor, at: slice) -> Tensor:
        return x if self.may is None else x.masked_fill(~self.may[..., at].unsqueeze(-1), 0.0)

    def spans(self, x: Tensor) -> list[slice]:
        length, size = x.shape[-2], self.how.chunk
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def map(self) -> tuple[Callable[[Tensor], Tensor], Tables, Tensor]:
        table = tables(self.q.shape[-1], self.how.terms, self.q.device)
        weight = table.weight.to(self.how.kept)
        return lambda x: monomials(x.mT.contiguous(), self.how.terms, table), table, weight

    def total(self) -> Tensor:
        """S of all keys."""
        mapped = self.map()[0]
        first, *others = self.spans(self.k)
        state = mapped(self.keys(first)) @ self.values(first)
        for at in others:
            state = state + mapped(self.keys(at)) @ self.values(at)
        return state


def blind(may: Tensor | None, causal: bool) -> Tensor | None:
    """Which queries may look at nothing: [..., L, 1] or [..., 1, 1]."""
    if may is None:
        return None
    seen = may.cumsum(dim=-1) > 0 if causal else may.any(dim=-1, keepdim=True)
    return ~seen.unsqueeze(-1)


def divide(sums: Tensor, unseeing: Tensor | None) -> tuple[Tensor, Tensor]:
    """The result [..., Dv] and the normaliser [..., 1] from the sums [..., Dv + 1]; zeros where nothing is seen."""
    below = sums[..., -1:]
    below = below if unseeing is None else below.masked_fill(unseeing, 1.0)
    return sums[..., :-1] / below, below


def naive(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: How) -> Tensor:
    """The formula as it stands, with its [Lq, Lk] matrix of weights: the reference."""
    read, everything = _Chunks(q, k, v, may, how), slice(None)
    weights = polynomial(read.queries(everything) @ read.keys(everything).mT, how.terms)
    sums = (weights.tril() if how.causal else weights) @ read.values(everything)
    return divide(sums, blind(may, how.causal))[0].to(v.dtype)


def scan(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: How) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Chunk after chunk of queries: where, the result and the normaliser. Differentiable, vmappable, traceable."""
    read, unseeing = _Chunks(q, k, v, may, how), blind(may, how.causal)
    mapped, _, weight = read.map()
    state = None if how.causal else read.total()
    spans = read.spans(q)
    for at in spans:
        queries = read.queries(at)
        sums = None if state is None else mapped(queries).mT @ (state * weight)
        if how.causal:
            keys, values = read.keys(at), read.values(at)
            own = polynomial(queries @ keys.mT, how.terms).tril() @ values
            sums = own if sums is None else sums + own
            if at is not spans[-1]:
                added = mapped(keys) @ values
                state = added if state is None else state + added
        assert sums is not None
        here = unseeing if unseeing is None or not how.causal else unseeing[..., at, :]
        yield at, *divide(sums, here)


class Scan(torch.autograd.Function):
    """`scan` whose gradient keeps the inputs, the result and the normaliser, and nothing else that grows with L."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: How) -> tuple[Tensor, Tensor]:
        """The result in v's type and the normaliser."""
        out = v.new_empty(*q.shape[:-1], v.shape[-1])
        below = q.new_empty(*q.shape[:-1], 1, dtype=how.kept)
        for one in _pieces(q, how):
            for at, result, normaliser in scan(q[one], k[one], v[one], None if may is None else may[one], how):
                out[one][..., at, :] = result
                below[one][..., at, :] = normaliser
        return out, below

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient reads."""
        *tensors, ctx.how = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, *output)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        """torch.func.jvp does not come here: it takes `scan` as it is."""
        raise TiebreakError('features have no forward derivative here: take it with torch.func.jvp, or form="naive"')

    @staticmethod
    def backward(ctx: Any, above: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of q, k and v."""
        q, k, v, may, out, below = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate the gradient: take the form that keeps everything
            wanted = [each for each in (q, k, v) if each.requires_grad]
            out = torch.cat([result for _, result, _ in scan(q, k, v, may, ctx.how)], dim=-2).to(v.dtype)
            found = iter(torch.autograd.grad(out, wanted, above, create_graph=True, materialize_grads=True))
            return *(next(found) if each.requires_grad else None for each in (q, k, v)), None, None
        gradients = [torch.empty_like(each, dtype=below.dtype) for each in (q, k, v)]
        backward = _backward_causal if ctx.how.causal else _backward_parallel
        for one in _pieces(q, ctx.how):
            read = _Chunks(q[one], k[one], v[one], None if may is None else may[one], ctx.how)
            backward(
                read, partial(_sums_gradient, above[one], out[one], below[one]), *(each[one] for each in gradients)
            )
        return *(each.to(q.dtype) for each in gradients), None, None


def _pieces(q: Tensor, how: How) -> list[tuple[slice | int, ...]]:
    """Stretches of the leading axes whose features of a chunk stay in a core's cache: out of it, 3 times as slow."""
    room = max(1, ROOM // (how.chunk * size_of(q.shape[-1], how.terms)))

    def cut(lead: tuple[int, ...]) -> list[tuple[slice | int, ...]]:
        if q.device.type != "cpu" or prod(lead) <= room:
            return [()]
        if (several := room // prod(lead[1:])) > 0:
            return [(slice(start, start + several),) for start in range(0, lead[0], several)]
        return [(index, *inner) for index in range(lead[0]) for inner in cut(lead[1:])]

    return cut(tuple(q.shape[:-2]))


def _sums_gradient(above: Tensor, out: Tensor, below: Tensor, at: slice) -> Tensor:
    """dN of a chunk from the gradient of N[:-1] / N[-1]."""
    scaled = above[..., at, :].to(below.dtype) / below[..., at, :]
    return torch.cat([scaled, -(scaled * out[..., at, :]).sum(dim=-1, keepdim=True)], dim=-1)


def _backward_causal(read: _Chunks, sums_gradient: Callable[[slice], Tensor], *into: Tensor) -> None:
    (dq, dk, dv), how = into, read.how
    mapped, table, weight = read.map()
    state: Tensor | None = None
    spans = read.spans(read.q)
    for at in spans:
        queries, keys, values, above = read.queries(at), read.keys(at), read.values(at), sums_gradient(at)
        scores = queries @ keys.mT
        dv[..., at, :] = read.hide((polynomial(scores, how.terms).tril_().mT @ above)[..., :-1], at)
        own = torch.zeros_like(queries)
        if how.terms > 1:
            slopes = (above @ values.mT).mul_(polynomial(scores, how.terms - 1)).tril_()
            own = slopes @ keys
            dk[..., at, :] = read.hide(slopes.mT @ queries, at)
        else:
            dk[..., at, :] = 0.0
        if state is not None:
            pulled = pull_back(queries.mT.contiguous(), (state * weight) @ above.mT, how.terms, table)
            own += pulled.mT
        dq[..., at, :] = own.mul_(how.scale)
        if at is not spans[-1]:
            added = mapped(keys) @ values
            state = added if state is None else state.add_(added)
    later: Tensor | None = None
    for at in reversed(spans):
        if later is not None:
            _pass_to_keys(read, at, later * weight, dk, dv)
        if at is not spans[0]:
            added = mapped(read.queries(at)) @ sums_gradient(at)
            later = added if later is None else later.add_(added)


def _backward_parallel(read: _Chunks, sums_gradient: Callable[[slice], Tensor], *into: Tensor) -> None:
    (dq, dk, dv), how = into, read.how
    mapped, table, weight = read.map()
    weighted, later = read.total() * weight, torch.zeros((), dtype=how.kept, device=read.q.device)
    for at in read.spans(read.q):
        queries, above = read.queries(at), sums_gradient(at)
        pulled = pull_back(queries.mT.contiguous(), weighted @ above.mT, how.terms, table)
        dq[..., at, :] = pulled.mT * how.scale
        later = later + mapped(queries) @ above
    dk.zero_()
    dv.zero_()
    for at in read.spans(read.k):
        _pass_to_keys(read, at, later * weight, dk, dv)


def _pass_to_keys(read: _Chunks, at: slice, later: Tensor, dk: Tensor, dv: Tensor) -> None:
    """Add what the queries behind `later` [M, Dv + 1] ask of the keys and values of a chunk."""
    keys, terms = read.keys(at).mT.contiguous(), read.how.terms
    table = read.map()[1]
    dv[..., at, :] += read.hide((monomials(keys, terms, table).mT @ later)[..., :-1], at)
    dk[..., at, :] += read.hide(pull_back(keys, later @ read.values(at).mT, terms, table).mT, at)

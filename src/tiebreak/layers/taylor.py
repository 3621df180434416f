"""Attention whose exponential is cut after a few Taylor terms: linear in the length, with a state of constant size.

    Z_i = sum_j p(s q_i . k_j) v_j / sum_j p(s q_i . k_j),   p(x) = sum_{n<terms} x^n / n!,   s = 1 / sqrt(D) or given
    p(q . k) = phi(q) . phi(k)   =>   Z = diag(Phi(Q) Phi(K)^T 1)^-1 Phi(Q) (Phi(K)^T V), computed right to left

Q [..., Lq, D], K [..., Lk, D], V [..., Lk, Dv], Z [..., Lq, Dv]; leading axes are equal. Phi [..., L, M] has one
feature per multiset of at most terms - 1 indices, M = C(D + terms - 1, terms - 1), in place of the sum of D^n ordered
ones: half as many at terms = 3. Time O(L M Dv) in place of O(L^2 (D + Dv)); a causal mask becomes a running sum.

Only an odd number of terms keeps every weight positive (terms = 3: at least 1/2, so nothing is added to the
normaliser); an even one warns. At terms = 3 a weight is 8 % too small at s q.k = 1 and 58 % at 3: keep the scale.
A mask is boolean over the keys, [..., Lk], True where a key may be looked at; a query that may look at nothing gets
zeros. Sums are kept in float32 at least, whatever the inputs (`taylor_forms.wide`), and in float64 where q and k are
so long that float32 would show (`taylor_rounding`). A traced step cannot choose: it gives NaN where it would be wrong.
"""

from __future__ import annotations

from dataclasses import replace
from math import factorial, prod

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from tiebreak.errors import TiebreakError
from tiebreak.layers.taylor_checks import (
    check_fits,
    check_floating,
    check_form,
    check_inputs,
    check_scale,
    check_state,
    check_tensors,
    check_terms,
)
from tiebreak.layers.taylor_forms import MANY, How, Scan, divide, monomials, naive, scan, size_of, tables, wide
from tiebreak.layers.taylor_rounding import FAR, LIMIT, NAIVE_TOO, bound, least
from tiebreak.layers.taylor_triton import attend_triton, chosen, refusal, taylor_decode


def feature_size(d: int, terms: int, symmetric: bool = True) -> int:
    """How many features a vector of `d` entries has: one per multiset of indices, or one per ordered tuple.

    >>> feature_size(16, 3), feature_size(16, 3, symmetric=False)
    (153, 273)
    """
    check_terms(terms)
    if d < 1:
        raise TiebreakError(f"a vector of {d} entries has no features: give it one entry or more")
    return size_of(d, terms) if symmetric else sum(d**n for n in range(terms))


def features(x: Tensor, terms: int, symmetric: bool = True) -> Tensor:
    """phi(x) [..., M] of x [..., D]: phi(q) . phi(k) = sum_{n<terms} (q . k)^n / n!.

    Symmetric: prod_i x_i^{n_i} / sqrt(prod_i n_i!) for every (n_1, ..., n_D) of sum under `terms`. Full: the entries of
    x (x) ... (x) x / sqrt(n!).
    """
    check_floating(x=x)
    if x.ndim == 0:
        raise TiebreakError("a single number has no features: give a vector [..., D]")
    kept, d = wide(x.dtype), x.shape[-1]
    size = feature_size(d, terms, symmetric)
    check_fits(d, terms, size * (x.numel() // d) * kept.itemsize, x.device)
    rows = x.to(kept).unsqueeze(-1)
    if symmetric:
        table = tables(d, terms, x.device)
        return (monomials(rows, terms, table) * table.weight.sqrt().to(kept)).squeeze(-1).to(x.dtype)
    found = [torch.ones_like(rows[..., :1, 0])]
    for _ in range(1, terms):
        found.append((found[-1].unsqueeze(-1) * rows.mT).flatten(-2))
    return torch.cat([each / factorial(n) ** 0.5 for n, each in enumerate(found)], dim=-1).to(x.dtype)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    terms: int = 3,
    causal: bool = False,
    scale: float | None = None,
    mask: Tensor | None = None,
    form: str = "auto",
) -> Tensor:
    """Taylor attention; every form computes the same.

    `naive` makes the [Lq, Lk] matrix of weights. `parallel` (not causal) and `chunked` (causal) make features of one
    chunk at a time and keep only inputs and results for the gradient. `recurrent` (causal) is a loop of `step`. `auto`
    is `parallel` or `chunked`, except where features do not pay (`_short`), which is `naive`. `triton` (a CUDA device,
    two or three terms) are fast kernels, which `auto` takes for 64 keys and more; docs/theory/taylor.md says what they
    can compute and how fast they are.
    """
    check_tensors(q, k, v, mask)
    check_scale(scale)
    if _autocasting(q):
        q, k, v = _widened(q, k, v)
        with torch.autocast(q.device.type, enabled=False):
            return attend(q, k, v, terms=terms, causal=causal, scale=scale, mask=mask, form=form)
    check_terms(terms)
    check_inputs(q, k, v, mask, causal)
    check_form(form, causal)
    if 0 in (*q.shape[:-2], v.shape[-1]):
        form = "naive"  # nothing to compute: its products take any shape
    if form == "triton" or (form == "auto" and chosen(q, k, v, terms)):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        return attend_triton(q, k, v, mask, terms=terms, causal=causal, scale=scale)
    size, lead = feature_size(q.shape[-1], terms), q.shape[:-2]
    chunk, kept = _chunk_size(size, causal), wide(q.dtype, size)
    if form != "naive":
        check_fits(q.shape[-1], terms, prod(lead) * size * (v.shape[-1] + 1 + 2 * chunk) * kept.itemsize, q.device)
    if form == "auto" and _short(q.shape[-2], k.shape[-2], size):
        form = "naive"
    kept = wide(q.dtype) if form == "naive" else kept
    how = How(terms, q.shape[-1] ** -0.5 if scale is None else scale, causal, chunk, kept)
    may = None if mask is None else mask.expand(*lead, k.shape[-2])
    guarded = form != "naive" and terms % 2 == 1
    traced = guarded and _traced(q)
    if guarded and not traced:
        how = replace(how, kept=_kept_for(q, k, may, how))
    far = bound(q, k, may, how) >= FAR if guarded and traced else None
    if prod(lead) == 1:  # products of plain matrices take two thirds of the time of batches of one
        q, k, v = (each.reshape(each.shape[-2:]) for each in (q, k, v))
        may = None if may is None else may.reshape(-1)
    if form == "naive":
        out = naive(q, k, v, may, how)
    elif form == "recurrent":
        out = _recurrent(q, k, v, may, how)
    # As in `attention.attend`: a gradient of our own would need a vmap rule, and short runs have memory to spare.
    # torch.compile does not trace it, since it would keep `tables`.
    elif torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling():
        out = torch.cat([result for _, result, _ in scan(q, k, v, may, how)], dim=-2).to(v.dtype)
    else:
        out = Scan.apply(q, k, v, may, how)[0]  # type: ignore[no-untyped-call]
    if far is not None:
        out = torch.where(far, torch.nan, out)
    return out.view(*lead, *out.shape[-2:])


def _traced(values: Tensor) -> bool:
    """Whether nobody can look at the values."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return True
    return get_proxy_mode() is not None or values.is_meta or isinstance(values, FakeTensor)


def _kept_for(q: Tensor, k: Tensor, may: Tensor | None, how: How) -> torch.dtype:
    """The type that the sums of these queries and keys need."""
    if float(bound(q, k, may, how)) < LIMIT:
        return how.kept
    if float(far := bound(q, k, may, how, torch.float64)) >= FAR:
        other = ', or form="naive"' if float(far) < NAIVE_TOO else ""
        raise TiebreakError(
            f"q and k are so long that rounding in float64 takes Taylor attention with {how.terms} terms"
            f" {float(far):.2g} of a value away: normalise q and k, use a smaller scale{other}"
        )
    return torch.float64


def init_state(
    d: int,
    values: int,
    *,
    lead: tuple[int, ...] = (),
    terms: int = 3,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """The state before the first token: [*lead, M, values + 1] zeros, in float32 at least; it never grows."""
    size = feature_size(d, terms)
    if values < 0 or not isinstance(lead, tuple | list | torch.Size):
        raise TiebreakError(
            f"a state of {values} values and leading axes {lead!r} cannot be: give 0 or more, and a tuple"
        )
    shape, kept = (*lead, size, values + 1), wide(dtype, size)
    check_fits(d, terms, prod(shape) * kept.itemsize, torch.device(device))
    return torch.zeros(shape, dtype=kept, device=device)


def step(
    state: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    terms: int = 3,
    scale: float | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One token: q, k [..., D], v [..., Dv], mask [...] (may it be looked at?) -> result [..., Dv] and the new state.

    S' = S + m(k) [v, 1]^T and N = m(q)^T W S', as in `taylor_forms`; S is not changed. Nobody looks here at how long q
    and k are (`taylor_rounding`): in a state of float32, results of orthogonal q and k with values up to 4.4 were off
    by 0.02 at |s| |q| |k| = 2,000 and by 4.8 at 20,000. Make the state with dtype=torch.float64 there. The normaliser
    stays at least what the number of keys allows.
    """
    check_tensors(q, k, v, mask)
    check_scale(scale)
    if _autocasting(q):
        q, k, v = _widened(q, k, v)
        with torch.autocast(q.device.type, enabled=False):
            return step(state, q, k, v, terms=terms, scale=scale, mask=mask)
    check_state(state, q, k, v, terms, mask)
    d = q.shape[-1]
    table, kept = tables(d, terms, q.device), state.dtype
    k, v = k.to(kept).unsqueeze(-1), v.to(kept).unsqueeze(-2)
    values = torch.cat([v, v.new_ones(*v.shape[:-1], 1)], dim=-1)
    if mask is not None:
        k, values = (each.masked_fill(~mask[..., None, None], 0.0) for each in (k, values))
    state = state + monomials(k, terms, table) * values
    queries = q.to(kept).unsqueeze(-1) * (d**-0.5 if scale is None else scale)
    sums = monomials(queries, terms, table).mT @ (state * table.weight.to(kept))
    count = state[..., :1, -1:]  # the monomial 1 times the ones: how many keys were seen
    if terms % 2 == 1:
        sums = torch.cat([sums[..., :-1], torch.maximum(sums[..., -1:], count * least(terms))], dim=-1)
    unseeing = None if mask is None else count == 0
    return divide(sums, unseeing)[0].squeeze(-2).to(q.dtype), state


def step_in_place(
    state: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    terms: int = 3,
    scale: float | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`step` that changes `state` and returns the result alone: on a GPU one kernel, which touches the state once."""
    check_tensors(q, k, v, mask)
    check_scale(scale)
    if _autocasting(q):
        q, k, v = _widened(q, k, v)
    lead = check_state(state, q, k, v, terms, mask)
    if lead != state.shape[:-2]:
        raise TiebreakError(
            f"a state of leading axes {tuple(state.shape[:-2])} cannot take tokens of {tuple(lead)} in place: make it "
            f"with init_state(..., lead={tuple(lead)}), or use step"
        )
    if not _decodable(state, q, k, v, terms):
        if 0 in (apart for apart, size in zip(state.stride(), state.shape, strict=True) if size > 1):
            raise TiebreakError("an expanded state has one place in memory for several sums: call state.clone() first")
        out, changed = step(state, q, k, v, terms=terms, scale=scale, mask=mask)
        state.copy_(changed)
        return out
    heads = [each.reshape(-1, each.shape[-1]) for each in (q, k, v)]
    may = None if mask is None else mask.expand(q.shape[:-1]).reshape(-1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return taylor_decode(state.view(-1, *state.shape[-2:]), *heads, may, scale).view(v.shape)  # type: ignore[no-any-return]


def _decodable(state: Tensor, q: Tensor, k: Tensor, v: Tensor, terms: int) -> bool:
    """Whether the kernel can take this token: it reads one query, key and value for each state, and has no gradient."""
    given = (state, q, k, v)
    alike = q.shape[:-1] == k.shape[:-1] == v.shape[:-1] == state.shape[:-2] and q.dtype == k.dtype == v.dtype
    watched = torch.is_grad_enabled() and any(each.requires_grad for each in given)
    if not alike or watched or torch._C._are_functorch_transforms_active() or 0 in (*state.shape[:-2], v.shape[-1]):
        return False
    return terms == 3 and state.dtype == torch.float32 and state.is_contiguous() and refusal(q, v, terms) is None


def _recurrent(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: How) -> Tensor:
    state = init_state(
        q.shape[-1], v.shape[-1], lead=tuple(q.shape[:-2]), terms=how.terms, dtype=how.kept, device=q.device
    )
    results = []
    for t in range(q.shape[-2]):
        now = None if may is None else may[..., t]
        token = q[..., t, :], k[..., t, :], v[..., t, :]
        out, state = step(state, *token, terms=how.terms, scale=how.scale, mask=now)
        results.append(out)
    return torch.stack(results, dim=-2)


def _chunk_size(size: int, causal: bool) -> int:
    """Measured on one core at D = 8 to 64 with three terms: 256 is best or within a tenth of it when causal.

    Without a part that is quadratic in the chunk, longer ones win as long as their features stay in the cache. With
    very many features (D = 32 and five terms: 58,905) chunks of 64 took half the time of 256.
    """
    if size > MANY:
        return 64
    return 256 if causal else max(256, min(1024, 2**17 // size))


def _short(queries: int, keys: int, size: int) -> bool:
    """Whether an Lq x Lk matrix is cheaper than features of size M.

    Measured forward and backward on one core, Lq = Lk: `naive` wins at 256 and loses at 512 for D = 16 (M = 153), wins
    at 512 and draws at 1,024 for D = 32 (M = 561), wins at 1,024 and loses at 2,048 for D = 64 (M = 2,145).
    If Lq != Lk, the harmonic mean takes the place of L, since the one costs Lq Lk and the other (Lq + Lk) M: a single
    query never makes features of its keys.
    """
    return 2 * queries * keys <= (queries + keys) * max(256, min(size, 1024))


def _autocasting(q: Tensor) -> bool:
    return not q.is_meta and torch.is_autocast_enabled(q.device.type)


def _widened(*given: Tensor) -> tuple[Tensor, ...]:
    """What attention computes in under autocast, as softmax does: float32 at least."""
    return tuple(each.to(wide(each.dtype)) for each in given)

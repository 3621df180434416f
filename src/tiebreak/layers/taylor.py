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

import warnings
from dataclasses import replace
from math import comb, factorial, prod

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from tiebreak.errors import TiebreakError, nearest
from tiebreak.layers.taylor_forms import MANY, How, Scan, divide, monomials, naive, scan, tables, wide
from tiebreak.layers.taylor_rounding import FAR, LIMIT, bound, least
from tiebreak.layers.taylor_triton import attend_triton, chosen, refusal, taylor_decode
from tiebreak.system import total_memory

FORMS = ("auto", "naive", "parallel", "chunked", "recurrent", "triton")
_warned: set[str] = set()


def feature_size(d: int, terms: int, symmetric: bool = True) -> int:
    """How many features a vector of `d` entries has: one per multiset of indices, or one per ordered tuple.

    >>> feature_size(16, 3), feature_size(16, 3, symmetric=False)
    (153, 273)
    """
    _check_terms(terms)
    if d < 1:
        raise TiebreakError(f"a vector of {d} entries has no features: give it one entry or more")
    return comb(d + terms - 1, terms - 1) if symmetric else sum(d**n for n in range(terms))


def features(x: Tensor, terms: int, symmetric: bool = True) -> Tensor:
    """phi(x) [..., M] of x [..., D]: phi(q) . phi(k) = sum_{n<terms} (q . k)^n / n!.

    Symmetric: prod_i x_i^{n_i} / sqrt(prod_i n_i!) for every (n_1, ..., n_D) of sum under `terms`. Full: the entries of
    x (x) ... (x) x / sqrt(n!).
    """
    _check_floating(x=x)
    kept, d = wide(x.dtype), x.shape[-1]
    size = feature_size(d, terms, symmetric)
    _check_fits(d, terms, size * (x.numel() // d) * kept.itemsize, x.device)
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
    if torch.is_autocast_enabled(q.device.type):
        q, k, v = _widened(q, k, v)
        with torch.autocast(q.device.type, enabled=False):
            return attend(q, k, v, terms=terms, causal=causal, scale=scale, mask=mask, form=form)
    _check_terms(terms)
    _check_inputs(q, k, v, mask, causal)
    _check_form(form, causal)
    if 0 in (*q.shape[:-2], v.shape[-1]):
        form = "naive"  # nothing to compute: its products take any shape
    if form == "triton" or (form == "auto" and chosen(q, k, v, terms)):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        return attend_triton(q, k, v, mask, terms=terms, causal=causal, scale=scale)
    size, lead = feature_size(q.shape[-1], terms), q.shape[:-2]
    chunk, kept = _chunk_size(size, causal), wide(q.dtype, size)
    if form != "naive":
        _check_fits(q.shape[-1], terms, prod(lead) * size * (v.shape[-1] + 1 + 2 * chunk) * kept.itemsize, q.device)
    if form == "auto" and _short(q.shape[-2], k.shape[-2], size):
        form = "naive"
    kept = wide(q.dtype) if form == "naive" else kept
    how = How(terms, q.shape[-1] ** -0.5 if scale is None else scale, causal, chunk, kept)
    guarded = form != "naive" and terms % 2 == 1
    traced = guarded and _traced(q)
    if guarded and not traced:
        how = replace(how, kept=_kept_for(q, k, how))
    far = bound(q, k, how) >= FAR if guarded and traced else None
    may = None if mask is None else mask.expand(*lead, k.shape[-2])
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


def _kept_for(q: Tensor, k: Tensor, how: How) -> torch.dtype:
    """The type that the sums of these queries and keys need."""
    if float(bound(q, k, how)) < LIMIT:
        return how.kept
    if float(far := bound(q, k, how, torch.float64)) >= FAR:
        raise TiebreakError(
            f"q and k are so long that rounding in float64 takes Taylor attention with {how.terms} terms"
            f' {float(far):.2g} of a value away: normalise q and k, use a smaller scale, or form="naive"'
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
    _check_terms(terms)
    size = feature_size(d, terms)
    shape, kept = (*lead, size, values + 1), wide(dtype, size)
    _check_fits(d, terms, prod(shape) * kept.itemsize, torch.device(device))
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

    S' = S + m(k) [v, 1]^T and N = m(q)^T W S', as in `taylor_forms`; S is not changed. The normaliser is at least what
    the number of keys allows: rounding may take it below, even to 0, for long q and k (`taylor_rounding`).
    """
    if torch.is_autocast_enabled(q.device.type):
        q, k, v = _widened(q, k, v)
        with torch.autocast(q.device.type, enabled=False):
            return step(state, q, k, v, terms=terms, scale=scale, mask=mask)
    _check_state(state, q, k, v, terms, mask)
    d = q.shape[-1]
    table, kept = tables(d, terms, q.device), state.dtype
    k, v = k.to(kept).unsqueeze(-1), v.to(kept).unsqueeze(-2)
    values = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
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
    if torch.is_autocast_enabled(q.device.type):
        q, k, v = _widened(q, k, v)
    lead = _check_state(state, q, k, v, terms, mask)
    if lead != state.shape[:-2]:
        raise TiebreakError(
            f"a state of leading axes {tuple(state.shape[:-2])} cannot take tokens of {tuple(lead)} in place: make it "
            f"with init_state(..., lead={tuple(lead)}), or use step"
        )
    if not _decodable(state, q, k, v, terms):
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


def _check_terms(terms: int) -> None:
    if terms < 1:
        raise TiebreakError(f"terms = {terms} leaves nothing of the exponential: use 1 or more (3 is usual)")
    if terms % 2 == 0 and "even" not in _warned:
        _warned.add("even")
        warnings.warn(
            f"terms = {terms} is even: weights can turn negative and the normaliser zero; use an odd number of terms",
            UserWarning,
            stacklevel=3,
        )


def _check_form(form: str, causal: bool) -> None:
    if form not in FORMS:
        raise TiebreakError(f"form {form!r} is unknown; {nearest(form, FORMS)}")
    if form not in ("auto", "naive", "triton") and causal != (form != "parallel"):
        other = 'form="parallel"' if not causal else 'form="chunked"'
        raise TiebreakError(f'form="{form}" does not go with causal={causal}: use {other} or form="auto"')


def _check_floating(**given: Tensor) -> None:
    for name, tensor in given.items():
        if not tensor.is_floating_point():
            raise TiebreakError(f"{name} is {tensor.dtype}, and attention needs fractions: call {name}.float() first")


def _widened(*given: Tensor) -> tuple[Tensor, ...]:
    """What attention computes in under autocast, as softmax does: float32 at least."""
    return tuple(each.to(wide(each.dtype)) if each.is_floating_point() else each for each in given)


def _check_state(state: Tensor, q: Tensor, k: Tensor, v: Tensor, terms: int, mask: Tensor | None) -> torch.Size:
    """The leading axes of the result."""
    _check_terms(terms)
    _check_floating(q=q, k=k, v=v)
    given = {"state": state, "q": q, "k": k, "v": v} | ({} if mask is None else {"mask": mask})
    if min(each.ndim for each in (q, k, v)) < 1:
        raise TiebreakError(f"a token needs q, k and v of [..., size], not {_shapes(given)}")
    d, shape = q.shape[-1], (feature_size(q.shape[-1], terms), v.shape[-1] + 1)
    if state.shape[-2:] != shape or k.shape[-1] != d:
        raise TiebreakError(
            f"q of size {d}, k of {k.shape[-1]} and v of {v.shape[-1]} with terms = {terms} need a state of {shape}, "
            f"not {tuple(state.shape[-2:])}: make it with init_state({d}, {v.shape[-1]}, terms={terms})"
        )
    if state.dtype not in (torch.float32, torch.float64):
        raise TiebreakError(f"the state is {state.dtype}, and sums need float32 or float64: keep what init_state made")
    if mask is not None and mask.dtype != torch.bool:
        raise TiebreakError(f"the mask is {mask.dtype}: make it boolean, True where a key may be looked at")
    leads = [state.shape[:-2], *(each.shape[:-1] for each in (q, k, v)), *([] if mask is None else [mask.shape])]
    if all(lead == leads[0] for lead in leads):
        return leads[0]  # at every token: what follows takes as long as the kernel
    try:
        return torch.Size(torch.broadcast_shapes(*leads))  # type: ignore[no-untyped-call]
    except RuntimeError:
        raise TiebreakError(f"state, q, k, v and mask need the same leading axes, not {_shapes(given)}") from None


def _shapes(given: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in given.items())


def _check_inputs(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> None:
    given = {"q": q, "k": k, "v": v}
    _check_floating(**given)
    if min(tensor.ndim for tensor in given.values()) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise TiebreakError(f"q, k and v need the same leading axes before [length, size], not {_shapes(given)}")
    if not q.dtype == k.dtype == v.dtype:
        raise TiebreakError(f"q is {q.dtype}, k {k.dtype} and v {v.dtype}: convert them to one type")
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise TiebreakError(f"q and k need the same size of one or more on their last axis, not {_shapes(given)}")
    if k.shape[-2] != v.shape[-2]:
        raise TiebreakError(
            f"there must be one value for each key, not {_shapes(given)}: cut or pad the longer, and mask it"
        )
    if 0 in (q.shape[-2], k.shape[-2]):
        raise TiebreakError(f"there is no attention over a sequence of length zero ({_shapes(given)}): leave it out")
    if causal and q.shape[-2] != k.shape[-2]:
        raise TiebreakError(f"causal attention needs as many queries as keys, not {_shapes(given)}")
    if mask is None:
        return
    wanted = (*k.shape[:-2], k.shape[-2])
    fits = mask.ndim <= len(wanted) and mask.ndim > 0 and mask.shape[-1] == wanted[-1]
    if not fits or any(a not in (1, b) for a, b in zip(mask.shape[::-1], wanted[::-1], strict=False)):
        raise TiebreakError(f"a mask over keys of {wanted} was expected, not {tuple(mask.shape)}: one entry per key")
    if mask.dtype != torch.bool:
        raise TiebreakError(f"the mask is {mask.dtype}: make it boolean, True where a key may be looked at")


def _check_fits(d: int, terms: int, needed: int, device: torch.device) -> None:
    on_gpu = device.type == "cuda"
    if torch.compiler.is_compiling():  # it cannot ask
        return
    there = torch.cuda.get_device_properties(device).total_memory if on_gpu else total_memory()
    if needed > there:
        raise TiebreakError(
            f"the features of D = {d} with terms = {terms} ({feature_size(d, terms):,} for each token) take "
            f'{needed // 10**9:,} GB and there are {there // 10**9:,} GB: use fewer terms, a smaller D or form="naive"'
        )

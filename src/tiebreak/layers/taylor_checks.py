"""What Taylor attention is given: checked before anything is computed, each with one line that says what to do."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from tiebreak.errors import TiebreakError, nearest
from tiebreak.layers.taylor_forms import size_of
from tiebreak.system import total_memory

FORMS = ("auto", "naive", "parallel", "chunked", "recurrent", "triton")
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MOST_TERMS = 20  # one more changes no digit of float64 at a score of 1
_warned: set[str] = set()


def check_terms(terms: int) -> None:
    """A whole number from 1 to 20; an even one warns once, where somebody may hear it."""
    if isinstance(terms, bool) or not isinstance(terms, int):
        raise TiebreakError(f"terms = {terms!r} is no whole number: use 3, or another odd number")
    if terms < 1:
        raise TiebreakError(f"terms = {terms} leaves nothing of the exponential: use 1 or more (3 is usual)")
    if terms > MOST_TERMS:
        raise TiebreakError(f"terms = {terms} is more than {MOST_TERMS}: use fewer (3 is usual), or softmax attention")
    if terms % 2 == 0 and "even" not in _warned and not torch.compiler.is_compiling():
        _warned.add("even")
        warnings.warn(
            f"terms = {terms} is even: weights can turn negative and the normaliser zero; use an odd number of terms",
            UserWarning,
            stacklevel=3,
        )


def check_scale(scale: float | None) -> None:
    """A finite number. Of a tensor most forms would have no gradient."""
    if scale is None or torch.compiler.is_compiling():  # it may be a symbol there
        return
    if isinstance(scale, Tensor):
        raise TiebreakError("the scale is a tensor, which would get no gradient: pass q * scale and scale=1.0")
    if not isinstance(scale, int | float) or not math.isfinite(scale):
        raise TiebreakError(f"scale = {scale!r} is no finite number: leave it out for 1 / sqrt(D), or give one")


def check_form(form: str, causal: bool) -> None:
    """A known form, which computes attention with this mask."""
    if form not in FORMS:
        raise TiebreakError(f"form {form!r} is unknown; {nearest(str(form), FORMS)}")
    if form not in ("auto", "naive", "triton") and causal != (form != "parallel"):
        other = 'form="parallel"' if not causal else 'form="chunked"'
        raise TiebreakError(f'form="{form}" does not go with causal={causal}: use {other} or form="auto"')


def check_tensors(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    """Tensors of types that sums can be made of; the mask boolean."""
    for name, each in (("q", q), ("k", k), ("v", v), *([] if mask is None else [("the mask", mask)])):
        if not isinstance(each, Tensor):
            raise TiebreakError(f"{name} is of type {type(each).__name__}: make it a tensor with torch.as_tensor")
    if mask is not None and mask.dtype != torch.bool:
        raise TiebreakError(f"the mask is {mask.dtype}: make it boolean, True where a key may be looked at")
    check_floating(q=q, k=k, v=v)


def check_floating(**given: Tensor) -> None:
    """Types that sums can be made of."""
    for name, tensor in given.items():
        if tensor.dtype not in TYPES:
            raise TiebreakError(f"{name} is {tensor.dtype}, and attention needs fractions: call {name}.float() first")


def check_one_type(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse several types."""
    if not q.dtype == k.dtype == v.dtype:
        raise TiebreakError(f"q is {q.dtype}, k {k.dtype} and v {v.dtype}: convert them to one type")


def check_state(state: Tensor, q: Tensor, k: Tensor, v: Tensor, terms: int, mask: Tensor | None) -> torch.Size:
    """The leading axes of the result."""
    check_terms(terms)
    check_one_type(q, k, v)
    given = {"state": state, "q": q, "k": k, "v": v} | ({} if mask is None else {"mask": mask})
    if min(each.ndim for each in (q, k, v)) < 1:
        raise TiebreakError(f"a token needs q, k and v of [..., size], not {_shapes(given)}")
    d, shape = q.shape[-1], (size_of(q.shape[-1], terms), v.shape[-1] + 1)
    if state.shape[-2:] != shape or k.shape[-1] != d:
        raise TiebreakError(
            f"q of size {d}, k of {k.shape[-1]} and v of {v.shape[-1]} with terms = {terms} need a state of {shape}, "
            f"not {tuple(state.shape[-2:])}: make it with init_state({d}, {v.shape[-1]}, terms={terms})"
        )
    if state.dtype not in (torch.float32, torch.float64):
        raise TiebreakError(f"the state is {state.dtype}, and sums need float32 or float64: keep what init_state made")
    leads = [state.shape[:-2], *(each.shape[:-1] for each in (q, k, v)), *([] if mask is None else [mask.shape])]
    if all(lead == leads[0] for lead in leads):
        return leads[0]  # at every token: what follows takes as long as the kernel
    try:
        return torch.Size(torch.broadcast_shapes(*leads))  # type: ignore[no-untyped-call]
    except RuntimeError:
        raise TiebreakError(f"state, q, k, v and mask need the same leading axes, not {_shapes(given)}") from None


def _shapes(given: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in given.items())


def check_inputs(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> None:
    """Sizes and types that go together."""
    given = {"q": q, "k": k, "v": v}
    if min(tensor.ndim for tensor in given.values()) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise TiebreakError(f"q, k and v need the same leading axes before [length, size], not {_shapes(given)}")
    check_one_type(q, k, v)
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


def check_fits(d: int, terms: int, needed: int, device: torch.device) -> None:
    """That the machine has as many bytes."""
    on_gpu = device.type == "cuda"
    if torch.compiler.is_compiling():  # it cannot ask
        return
    there = torch.cuda.get_device_properties(device).total_memory if on_gpu else total_memory()
    if needed > there:
        raise TiebreakError(
            f"the features of D = {d} with terms = {terms} ({size_of(d, terms):,} for each token) take "
            f'{needed // 10**9:,} GB and there are {there // 10**9:,} GB: use fewer terms, a smaller D or form="naive"'
        )

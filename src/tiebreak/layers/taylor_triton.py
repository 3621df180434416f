"""Taylor attention on a GPU as ops of our own: `form="triton"` of `taylor.attend`.

The ops run the kernels of `kernels.taylor_*`; `kernels.taylor_plan` says how the work is cut and what it should cost.
Under vmap the runs fold into the batch. The gradient keeps q, k, v, the result, one number per query and the states of
segments: in all at most 15 % more than inputs and results of 1,024 elements and more, or with a causal mask.

Unlike the other forms this one does not look at how long q and k are, since that would wait for the device: with u half
the spacing of the operands at 1 (2^-9 for bfloat16, 2^-12 for float16, 2^-24 for float32), a result that depends on
keys of other segments is off by up to 2 u p(|s| |q| |k|) of a value (`taylor_rounding`), mostly a tenth of it. It
stays finite while sums of float32 do, as the normaliser never falls below half the number of keys.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from typing import Any

import torch
from torch import Tensor

from tiebreak.errors import TiebreakError
from tiebreak.layers.taylor_forms import How, naive, tables, wide
from tiebreak.layers.transforms import once_differentiated

# Keys from which `form="auto"` takes this form on a GPU; None: never. On an H200 (bfloat16, causal, D = 16, Dv = 64) it
# was faster than every other form at 64 elements, the shortest measured, called and captured, with 4 and 128 heads.
AUTO_LENGTH: int | None = 64
WIDEST, WIDEST_VALUES = 32, 128
AT_ONCE = 64  # values of one pass in bfloat16 or with D over 16: wider tiles do not fit into registers
FEW = 64  # keys under which rounding of features, or to 16 bits, would show: weights are computed one by one
TYPES = (torch.float32, torch.bfloat16, torch.float16)
INSTALLED = find_spec("triton") is not None  # asked once: torch.compile cannot trace the question
_known: dict[tuple[int, torch.device], tuple[Tensor, Tensor, Tensor]] = {}


def refusal(q: Tensor, v: Tensor, terms: int) -> str | None:
    """Why the kernels cannot compute this, if they cannot."""
    if not INSTALLED:
        return "triton is not installed"
    if q.device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"the tensors are on {q.device.type}, not on a CUDA device"
    if torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return "torch.compile does not trace its rules for vmap and torch.func.grad"
    if terms not in (2, 3):
        return f"its kernels have two or three terms, not {terms}"
    if q.shape[-1] > WIDEST or v.shape[-1] > WIDEST_VALUES:
        return f"its kernels take D up to {WIDEST} and values up to {WIDEST_VALUES}, not {q.shape[-1]}, {v.shape[-1]}"
    return None if q.dtype in TYPES else f"its kernels do not compute in {q.dtype}"


def chosen(q: Tensor, k: Tensor, v: Tensor, terms: int) -> bool:
    """Whether `form="auto"` takes this form."""
    long = AUTO_LENGTH is not None and k.shape[-2] >= AUTO_LENGTH
    return long and q.is_cuda and refusal(q, v, terms) is None and _has_derivatives()


def _has_derivatives() -> bool:
    """Whether the kernels have the derivatives that the call is inside of. torch.compile cannot trace the question."""
    return not torch._C._are_functorch_transforms_active() or once_differentiated()


def attend_triton(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, terms: int, causal: bool, scale: float
) -> Tensor:
    """What `taylor.attend` computes, whose arguments these are; they have been checked."""
    if (why := refusal(q, v, terms)) is not None:
        raise TiebreakError(f'form="triton" cannot be used here: {why}; use form="auto"')
    if v.shape[-1] > AT_ONCE and (q.dtype == torch.bfloat16 or q.shape[-1] > 16):
        parts = v.split(AT_ONCE, dim=-1)  # type: ignore[no-untyped-call]
        found = [attend_triton(q, k, each, mask, terms=terms, causal=causal, scale=scale) for each in parts]
        return torch.cat(found, dim=-1)
    lead = q.shape[:-2]
    if k.shape[-2] < FEW and (not causal or q.dtype != torch.float32):
        may = None if mask is None else mask.expand(*lead, k.shape[-2])
        return naive(q, k, v, may, How(terms, scale, causal, FEW, wide(q.dtype)))
    two = (prod(lead[:-1]), lead[-1] if lead else 1)
    rows = [each.reshape(*two, *each.shape[-2:]) for each in (q, k, v)]
    may = None if mask is None else mask.expand(*lead, k.shape[-2]).reshape(*two, k.shape[-2])
    how = [float(terms), float(causal), float(scale)]  # Triton would compile another kernel for a whole number
    # A registered gradient does not go through functorch, and torch.compile does not trace a rule for vmap.
    if torch._C._are_functorch_transforms_active():
        out = _Attend.apply(*rows, may, how)[0]  # type: ignore[no-untyped-call]
    elif _eager(q):
        out = _Direct.apply(*rows, may, how)  # type: ignore[no-untyped-call]
    else:
        out = taylor_attend(*rows, may, how)[0]
    return out.view(*lead, *out.shape[-2:])  # type: ignore[no-any-return]


@torch.library.custom_op("tiebreak::taylor_attend", mutates_args=())
def taylor_attend(
    q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: list[float]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result [B, H, Lq, Dv] of [B, H, L, width], and what its gradient needs: `taylor_forward.forward` says what.

    `how` is the number of terms, whether it is causal, and the scale.
    """
    return _forward(q, k, v, may, how)


def _forward(
    q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: Sequence[float]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from tiebreak.layers.kernels.taylor_forward import forward

    return forward(_plan(q, v, how), _in_rows(q), _in_rows(k), _in_rows(v), may)


@torch.library.custom_op("tiebreak::taylor_gradients", mutates_args=())
def taylor_gradients(  # noqa: PLR0913, PLR0917  (an op takes no structures)
    q: Tensor, k: Tensor, v: Tensor, may: Tensor | None,
    out: Tensor, inverse: Tensor, states: Tensor, norms: Tensor, above: Tensor, how: list[float],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of q, k and v; `above` is that of the result."""
    return _gradients((q, k, v, may), (out, inverse, states, norms), above, how)


def _gradients(
    given: tuple[Tensor, Tensor, Tensor, Tensor | None], result: tuple[Tensor, ...], above: Tensor, how: list[float]
) -> tuple[Tensor, Tensor, Tensor]:
    from tiebreak.layers.kernels.taylor_backward import backward

    q, k, v, above = (_in_rows(each) for each in (*given[:3], above))
    return backward(_plan(q, v, how), q, k, v, given[3], tuple(each.contiguous() for each in result), above)


@torch.library.custom_op("tiebreak::taylor_decode", mutates_args=("state",))
def taylor_decode(state: Tensor, q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, scale: float) -> Tensor:
    """The result [heads, Dv] of one token, whose key and value are added to the state [heads, M, Dv + 1]."""
    from tiebreak.layers.kernels.taylor_decode import decode

    token = (q.contiguous(), k.contiguous(), v.contiguous())
    return decode(state, token, None if may is None else may.contiguous(), scale, indices(q.shape[1], q.device))


@taylor_attend.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, how: list[float]) -> Any:
    from tiebreak.layers.kernels.taylor_plan import operand

    plan = _plan_of(1, 1, int(q.shape[3]), int(v.shape[3]), int(how[0]), bool(how[1]), how[2], q.dtype)
    norms = q.new_empty(*q.shape[:2], plan.slots(k.shape[2]), plan.features, dtype=torch.float32)
    states = norms.new_empty(*norms.shape, v.shape[3], dtype=operand(q.dtype))
    return q.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3], dtype=torch.float32), states, norms


@taylor_gradients.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Any:
    return tuple(each.new_empty(each.shape) for each in (q, k, v))


@taylor_decode.register_fake
def _(state: Tensor, q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, scale: float) -> Tensor:
    return v.new_empty(v.shape)


def _plan(q: Tensor, v: Tensor, how: Sequence[float]) -> Any:
    return _plan_of(q.shape[0], q.shape[1], q.shape[3], v.shape[3], int(how[0]), bool(how[1]), how[2], q.dtype)


@lru_cache(maxsize=256)
def _plan_of(*given: Any) -> Any:
    from tiebreak.layers.kernels.taylor_plan import Plan

    return Plan(*given)


def _eager(q: Tensor) -> bool:
    """Whether nothing watches the call, so that it can do without an op, which takes 100 microseconds by itself."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return False
    return type(q) in (Tensor, torch.nn.Parameter)


def _in_rows(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def indices(d: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """First index, second index and weight of every monomial of three terms, in the order of a state's rows."""
    if (d, device) not in _known:
        table = tables(d, 3, device)
        none, each = torch.zeros(d + 1, dtype=torch.int32, device=device), torch.arange(d, device=device)
        first = torch.cat([none[:1], each.int(), table.first[0].int()])
        rest = torch.cat([none, table.rest[0].int()])
        _known[d, device] = first, rest, table.weight.flatten().float()
    return _known[d, device]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.how = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx: Any, above: Tensor, *_: Tensor) -> Any:
    found = taylor_gradients(*ctx.saved_tensors, above, ctx.how)
    return *found, None, None


taylor_attend.register_autograd(_backward, setup_context=_keep)


def _refuse_forward(ctx: Any, *_: Any) -> Any:
    raise TiebreakError('form="triton" has no forward derivative: use form="naive"')


def _refuse(ctx: Any, *_: Any) -> Any:
    raise TiebreakError('form="triton" has no second derivative: use form="naive"')


taylor_gradients.register_autograd(_refuse)


class _Direct(torch.autograd.Function):
    """`taylor_attend` without the op."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        q, k, v, may, ctx.how = given
        found = _forward(q, k, v, may, ctx.how)
        ctx.save_for_backward(q, k, v, may, *found)
        return found[0]

    jvp = staticmethod(_refuse_forward)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> Any:
        kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody may differentiate the gradient: the op refuses that
            return *taylor_gradients(*kept, above, ctx.how), None, None
        return *_gradients(kept[:4], kept[4:], above, ctx.how), None, None


class _Attend(torch.autograd.Function):
    """`taylor_attend` of one run, and under vmap of all of them, which may be under another transform."""

    @staticmethod
    def forward(*given: Any) -> Any:
        return torch.ops.tiebreak.taylor_attend(*given)

    setup_context = staticmethod(_keep)
    jvp = staticmethod(_refuse_forward)

    @staticmethod
    def backward(ctx: Any, above: Tensor, *_: Tensor) -> Any:
        found = _Gradients.apply(*ctx.saved_tensors, above, ctx.how)  # type: ignore[no-untyped-call]
        return *found, None, None

    @staticmethod
    def vmap(info: Any, axes: Any, *given: Any) -> Any:
        return _folded(_Attend, info.batch_size, axes, given)


class _Gradients(torch.autograd.Function):
    @staticmethod
    def forward(*given: Any) -> Any:
        return torch.ops.tiebreak.taylor_gradients(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    backward = staticmethod(_refuse)

    @staticmethod
    def vmap(info: Any, axes: Any, *given: Any) -> Any:
        return _folded(_Gradients, info.batch_size, axes, given)


def _folded(function: Any, runs: int, axes: Any, given: Any) -> Any:
    """Apply with the axis of runs folded into the batch; what all runs share is repeated without a copy."""
    folded = []
    for each, axis in zip(given, axes, strict=True):
        if isinstance(each, Tensor):
            front = each.expand(runs, *each.shape) if axis is None else each.movedim(axis, 0)
            folded.append(front.flatten(0, 1))
        else:
            folded.append(each)
    found = tuple(each.unflatten(0, (runs, each.shape[0] // max(1, runs))) for each in function.apply(*folded))
    return found, (0,) * len(found)

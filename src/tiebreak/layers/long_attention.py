"""Attention over long sequences, for many runs at once: kernels that never hold the matrix of scores.

Under vmap torch's attention kernels have no rule for their gradient and go run by run; the formula, products and a
softmax, has rules, but holds several matrices [runs, B, H, Lq, Lk]: slow and large when sequences are long. Here the
runs fold into the batch and the kernels of `attention_kernels` compute result and gradient. `attention.attend` and
`mapped_forms` take this form from a length on (`LONG`), where it was faster or the memory is needed.

H200, torch 2.11, forward and gradient of 9 runs of 65,536 elements each, captured, time over that of the formula, with
2 heads of 100 / 4 of 16 features. bfloat16, cuDNN's kernel: 1.3 / 0.5 at L = 128, 0.9 / 0.4 at 256, 0.65 / 0.3 at 512,
0.3 / 0.15 at 1,377, with a mask of keys 0.27; memory there 2.3 / 0.5 GiB in place of 13 / 24. Flash takes 1.2 to 1.8
times as long as cuDNN's, the efficient kernel 2 to 3.6 times. float32, efficient kernel: 1.2 to 1.5 at 128 to 1,377,
where TF32 is allowed 1.4 to 2.9: it is taken for its memory (4.6 GiB in place of 26 at 1,377). All were right, in 941
cases.

Two cores, float32, forward and gradient of 4 runs, time over that of the formula, with 2 heads of 100 / 4 of 16
features: 1.0 to 1.8 at L = 25, 1.0 / 0.8 at 98 and 256, 0.8 / 0.45 at 512, 0.66 / 0.3 at 1,377; causal 0.6 / 0.35 at
512 and 0.4 / 0.2 at 1,377; with masks up to 1.0 / 0.6 and 0.7 / 0.45. In bfloat16 the CPU's kernel gains nothing (0.5
to 1.9). The machine was busy: take these as rough.

Masks become what the kernels take in `attention_masks`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.layers.attention_kernels import How, Name, backward, forward
from tiebreak.layers.attention_masks import LEAST_SCALE, as_bias, as_features, four_axes, levelled, of_keys
from tiebreak.layers.transforms import once_differentiated

# Queries times keys from which this form is taken; None: never. By device and type, and for "pairs" with a mask that is
# no feature (it differs from query to query, or has numbers and float16): on a GPU only the efficient kernel takes it.
LONG: dict[str, int | None] = {
    "cpu": 512**2,
    "cpu half": None,
    "cuda": 4096**2,
    "cuda causal": 2048**2,
    "cuda half": 256**2,
    "cuda half pairs": 1024**2,
}
HALF_KERNEL: Name | None = None  # of CUDA without a bias, to measure; None: cuDNN's where it serves, else flash
CUDNN, CUDNN_WIDEST = 90100, 128  # the version and the features of a head from which, up to which, cuDNN's is taken
WIDEST = 192  # features of a head under which all kernels serve, on all GPUs
BIASED = {"efficient", "cpu"}  # kernels that take a bias
BIAS = 3  # place of the bias among the arguments of the functions below
TYPES = {"cpu": (torch.float32, torch.bfloat16), "cuda": (torch.float32, torch.bfloat16, torch.float16)}


def attend_if_long(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor | None:
    """What `attention.attend` computes where this form takes it, else None.

    The mask may be one of numbers too, which are added to the scores; -inf forbids a pair. Under autocast operands are
    rounded first, and nothing is rounded inside: see `mapped_forms`.
    """
    device = q.device.type
    if device not in TYPES:
        return None
    rounded = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if rounded else q.dtype
    pairs = mask is not None and not of_keys(mask, dtype)
    least = LONG.get(_kind(q, dtype, causal=causal, pairs=pairs))
    if least is None or q.ndim < 3 or q.shape[-2] * k.shape[-2] < least:
        return None
    if not rounded:
        return _attend(q, k, v, mask, causal, scale) if computes(q, k, v, mask, causal=causal, scale=scale) else None
    q, k, v = (each if each.dtype == torch.float64 else each.to(dtype) for each in (q, k, v))  # as autocast does
    with torch.autocast(device, enabled=False):
        return _attend(q, k, v, mask, causal, scale) if computes(q, k, v, mask, causal=causal, scale=scale) else None


def computes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, causal: bool, scale: float | None) -> bool:
    """Whether the kernels compute attention of these. Only shapes and types are looked at."""
    queries, keys = q.shape[-2], k.shape[-2]
    if (causal and queries != keys) or (scale is not None and not scale >= LEAST_SCALE):
        return False
    if not (q.dtype == k.dtype == v.dtype and q.dtype in TYPES[q.device.type] and q.device == k.device == v.device):
        return False
    if q.shape[:-2] != k.shape[:-2] or k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        return False
    if max(q.shape[-1], v.shape[-1]) >= WIDEST or (q.is_cuda and not _capable(q.device)):
        return False
    return once_differentiated() and (mask is None or _usable(mask, (*q.shape[:-1], keys)))


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    lead, width = q.shape[:-2], v.shape[-1]
    heads = lead[-1]
    rows = [each.reshape(-1, heads, *each.shape[-2:]) for each in (q, k, v)]
    kernel = _kernel(q, v)
    how = How(kernel, causal, q.shape[-1] ** -0.5 if scale is None else scale)
    none, columns, bias = None, None, None
    if mask is not None:
        mask = four_axes(mask, lead, k.shape[-2])
        if of_keys(mask, q.dtype) and (causal or kernel not in BIASED):
            none, columns = as_features(mask, how, q.dtype)
        else:
            none, bias = as_bias(mask, q, causal) if mask.dtype == torch.bool else levelled(mask, q.dtype)
    if bias is not None and q.is_cuda:
        how = replace(how, kernel="efficient")
    out = _Attend.apply(*_padded(rows, columns), bias, how)[0][..., :width]  # type: ignore[no-untyped-call]
    if none is not None:
        out = out.masked_fill(none, 0.0)
    return out.reshape(*lead, *out.shape[-2:])  # type: ignore[no-any-return]


def _kind(q: Tensor, dtype: torch.dtype, *, causal: bool, pairs: bool) -> str:
    """A key of `LONG`."""
    half = dtype != torch.float32
    if not q.is_cuda:
        return f"{q.device.type} half" if half else q.device.type
    if half:
        return "cuda half pairs" if pairs else "cuda half"
    return "cuda causal" if causal else "cuda"


@lru_cache(maxsize=16)
def _capable(device: torch.device) -> bool:
    return torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


def _kernel(q: Tensor, v: Tensor) -> Name:
    if not q.is_cuda:
        return "cpu"
    if q.dtype == torch.float32:
        return "efficient"
    narrow = max(q.shape[-1], v.shape[-1]) < CUDNN_WIDEST
    return HALF_KERNEL or ("cudnn" if narrow and _has_cudnn(q.device) else "flash")


@lru_cache(maxsize=16)
def _has_cudnn(device: torch.device) -> bool:
    """Whether cuDNN has attention for this GPU (measured on Hopper) in a version that is known to be right."""
    version = torch.backends.cudnn.version() or 0  # type: ignore[no-untyped-call]
    return version >= CUDNN and torch.cuda.get_device_capability(device)[0] >= 9


def _tracked(values: Tensor) -> bool:
    """Whether a gradient of these is asked for, at any level of transforms."""
    while not values.requires_grad and torch._C._functorch.is_functorch_wrapped_tensor(values):
        values = torch._C._functorch.get_unwrapped(values)
    return values.requires_grad


def _usable(mask: Tensor, pairs: tuple[int, ...]) -> bool:
    """Whether a mask broadcasts to all pairs [*lead, Lq, Lk], and no gradient of it is asked for."""
    if not 2 <= mask.ndim <= len(pairs) or not (mask.dtype == torch.bool or mask.is_floating_point()):
        return False
    fits = all(have in (1, want) for have, want in zip(mask.shape[::-1], pairs[::-1], strict=False))
    return fits and not _tracked(mask)


def _padded(rows: list[Tensor], columns: tuple[Tensor, Tensor] | None) -> list[Tensor]:
    """q, k and v of one width, which on a GPU is a multiple of 8."""
    if columns is not None:
        more = [each.expand(*row.shape[:-1], 1) for each, row in zip(columns, rows[:2], strict=True)]
        rows = [*(torch.cat(pair, dim=-1) for pair in zip(rows[:2], more, strict=True)), rows[2]]
    width = max(each.shape[-1] for each in rows)
    width += -width % (8 if rows[0].is_cuda else 1)
    return [each if each.shape[-1] == width else F.pad(each, (0, width - each.shape[-1])) for each in rows]


class _Attend(torch.autograd.Function):
    """`attention_kernels.forward` of one run, and under vmap of all of them."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, how: How) -> Any:
        return forward(q, k, v, bias, how)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.how = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output)

    @staticmethod
    def backward(ctx: Any, above: Tensor, *_: Tensor) -> Any:
        found = _Gradients.apply(*ctx.saved_tensors, above, ctx.how)  # type: ignore[no-untyped-call]
        return *found, None, None

    @staticmethod
    def vmap(info: Any, axes: Any, *given: Any) -> Any:
        out, norms, *state = _Attend.apply(*_folded(info.batch_size, axes, given))  # type: ignore[no-untyped-call]
        return (*_unfolded(info.batch_size, (out, norms)), *state), (0, 0, None, None)


class _Gradients(torch.autograd.Function):
    @staticmethod
    def forward(*given: Any) -> Any:
        q, k, v, bias, out, norms, seed, offset, above, how = given
        return backward((q, k, v, bias), out, (norms, seed, offset), above, how)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass  # asking for a second derivative raises

    @staticmethod
    def vmap(info: Any, axes: Any, *given: Any) -> Any:
        found = _Gradients.apply(*_folded(info.batch_size, axes, given))  # type: ignore[no-untyped-call]
        return _unfolded(info.batch_size, found), (0, 0, 0)


def _folded(runs: int, axes: Any, given: Any) -> list[Any]:
    """Arguments with the axis of runs folded into the batch; what all runs share is repeated.

    A bias of all runs and all examples stays one, and random state has no batch.
    """
    size = given[0].shape[0] if axes[0] is None else given[0].movedim(axes[0], 0).shape[1]
    folded = []
    for place, (each, axis) in enumerate(zip(given, axes, strict=True)):
        if not isinstance(each, Tensor) or each.ndim < 2 or (place == BIAS and axis is None and each.shape[0] == 1):
            folded.append(each)
            continue
        front = each.expand(runs, *each.shape) if axis is None else each.movedim(axis, 0)
        folded.append(front.expand(runs, size, *front.shape[2:]).flatten(0, 1))
    return folded


def _unfolded(runs: int, found: Any) -> tuple[Tensor, ...]:
    return tuple(each.unflatten(0, (runs, -1)) for each in found)

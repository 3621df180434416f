"""Layer normalisation of many runs on a GPU as one op with its own gradient and vmap rule.

Under vmap torch normalises without weights, and multiplies and adds in passes of their own; its gradient has seven
passes over the whole tensor. Here each way is one kernel (`kernels.layer_norm`): a training step of the speech networks
(9 runs, bfloat16, long clips) reads and writes 162 GB instead of 212. In a compiled program torch's form stays, which
the compiler joins with its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType

from tiebreak.layers.transforms import once_differentiated

LEAST = 1 << 17  # numbers of one run's tensor from which this form is taken on a GPU: a guess
WIDEST = 4096
_form: list[bool] = [True]  # whether it may be taken; the last counts


@contextmanager
def own_norms(on: bool) -> Iterator[None]:
    """Inside, layers may take this form, or may not."""
    _form.append(on)
    try:
        yield
    finally:
        _form.pop()


def normalise(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor | None:
    """What `F.layer_norm` and `torch.layer_norm` compute, whose arguments these are, or None: not in this form."""
    if weight is None or bias is None or len(normalized_shape) != 1 or not _takes(input, weight, bias):
        return None
    rows = input.reshape(-1, input.shape[-1])
    found = _Norm.apply(rows, weight, bias, eps)[0]  # type: ignore[no-untyped-call]
    return found.view(input.shape)  # type: ignore[no-any-return]


def _takes(x: Tensor, weight: Tensor, bias: Tensor) -> bool:
    if not (_form[-1] and x.is_cuda and x.numel() >= LEAST and x.shape[-1] <= WIDEST):
        return False
    return _mapped() and all(each.dtype == torch.float32 for each in (x, weight, bias))


def _mapped() -> bool:
    """Whether there are many runs, and no gradient of a gradient is asked for."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    return any(each.key() == TransformType.Vmap for each in stack) and once_differentiated()


@torch.library.custom_op("tiebreak::layer_norm", mutates_args=())
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """y of x [n, R, W] with weight and bias [n, W], and mean and 1 / standard deviation of each row."""
    means = x.mean(dim=-1)
    scales = (x.var(dim=-1, correction=0) + eps).rsqrt()
    return (x - means[..., None]) * scales[..., None] * weight[:, None] + bias[:, None], means, scales


@torch.library.custom_op("tiebreak::layer_norm_gradient", mutates_args=())
def layer_norm_gradient(
    x: Tensor, weight: Tensor, means: Tensor, scales: Tensor, above: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, weight and bias."""
    z = (x - means[..., None]) * scales[..., None]
    g = above * weight[:, None]
    shift, along = g.mean(dim=-1, keepdim=True), (g * z).mean(dim=-1, keepdim=True)
    return (g - shift - z * along) * scales[..., None], (above * z).sum(dim=1), above.sum(dim=1)


@layer_norm.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape[:2]), x.new_empty(x.shape[:2])


@layer_norm_gradient.register_fake
def _(x: Tensor, weight: Tensor, means: Tensor, scales: Tensor, above: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(weight.shape), x.new_empty(weight.shape)


@layer_norm.register_kernel("cuda")
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    from tiebreak.layers.kernels import layer_norm as kernels

    return kernels.forward(x.contiguous(), weight.contiguous(), bias.contiguous(), eps)


@layer_norm_gradient.register_kernel("cuda")
def _(x: Tensor, weight: Tensor, means: Tensor, scales: Tensor, above: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from tiebreak.layers.kernels import layer_norm as kernels

    return kernels.backward(x.contiguous(), weight.contiguous(), means, scales, above.contiguous())


def _front(info: Any, tensors: Sequence[Any], axes: Sequence[int | None]) -> list[Tensor]:
    """The run axis first; what all runs share is repeated."""
    return [
        each.expand(info.batch_size, *each.shape) if axis is None else each.movedim(axis, 0)
        for each, axis in zip(tensors, axes, strict=True)
    ]


class _Norm(torch.autograd.Function):
    """`layer_norm` of one run, and under vmap of all of them."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Any:
        return tuple(each[0] for each in torch.ops.tiebreak.layer_norm(x[None], weight[None], bias[None], eps))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(inputs[0], inputs[1], *output[1:])

    @staticmethod
    def backward(ctx: Any, above: Tensor, *_: Any) -> Any:
        return *_Gradient.apply(*ctx.saved_tensors, above), None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, axes: Any, *inputs: Any) -> Any:
        found = torch.ops.tiebreak.layer_norm(*_front(info, inputs[:3], axes[:3]), inputs[3])
        return tuple(found), (0, 0, 0)


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> Any:
        return tuple(each[0] for each in torch.ops.tiebreak.layer_norm_gradient(*(each[None] for each in inputs)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass  # a second derivative is not offered: asking for it raises

    @staticmethod
    def vmap(info: Any, axes: Any, *inputs: Any) -> Any:
        return tuple(torch.ops.tiebreak.layer_norm_gradient(*_front(info, inputs, axes))), (0, 0, 0)

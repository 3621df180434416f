"""The matrix product of every run as one op, and plain SGD along one. `kernels.product` computes them on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("tiebreak::product", mutates_args=())
def product(a: Tensor, b: Tensor) -> Tensor:
    """a b of every run: [n, M, K] and [n, K, N]."""
    return torch.bmm(a, b)


@product.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(a.shape[0], a.shape[1], b.shape[2])


@product.register_kernel("cuda")
def _(a: Tensor, b: Tensor) -> Tensor:
    from tiebreak.layers.kernels import product as kernels

    return kernels.product(a, b)


def descend(param: Tensor, a: Tensor, b: Tensor, rate: Tensor) -> None:
    """param - rate a b, in place: param [n, M, N], rate n numbers."""
    if param.is_cuda:
        from tiebreak.layers.kernels import product as kernels

        kernels.descend(param, a, b, rate)
    else:
        param.sub_(rate.view(-1, 1, 1) * torch.bmm(a, b))


OP = torch.ops.tiebreak.product.default  # what a graph calls

"""How many floating-point operations an op of torch takes, where torch's own counter has no rule or a wrong one.

A multiply-add is two operations. Only products count: matrices, convolutions, attention, recurrences. Elementwise ops
and reductions (activation functions, softmax, norms, pooling, sums) and ops that only move numbers are free, as in
torch's own convention. `UncountedOps` collects every op that is neither counted nor known to be free; with such an op
the total is unknown.

Measured on torch 2.13, CPU: `FlopCounterMode` alone counts 0 for `nn.LSTM`, for attention by the CPU's flash kernel,
for `nn.MultiheadAttention` on its fast path, for sparse COO products and for matrix times vector, and counts sparse CSR
products as if they were dense. Causal attention counts in full, as in torch's rules, though kernels skip up to half.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count

aten = torch.ops.aten
Rule = Callable[..., int]

FREE = frozenset(
    """
    _prelu_kernel _prelu_kernel_backward glu glu_backward rrelu_with_noise
    _adaptive_avg_pool2d _adaptive_avg_pool3d _log_softmax _log_softmax_backward_data _native_batch_norm_legit
    _native_batch_norm_legit_no_training _pack_padded_sequence _pad_packed_sequence _reshape_alias _reshape_copy
    _safe_softmax _softmax _softmax_backward_data _thnn_fused_gru_cell _thnn_fused_lstm_cell _to_copy _unsafe_index
    _unsafe_view _weight_norm_interface adaptive_max_pool2d arange avg_pool1d avg_pool2d avg_pool2d_backward
    avg_pool3d batch_norm_backward bernoulli bernoulli_ binary_cross_entropy binary_cross_entropy_backward bincount cat
    channel_shuffle col2im constant_pad_nd copy copy_ count_nonzero cummax cummin cumprod cumsum diag_embed
    embedding embedding_dense_backward embedding_renorm_ empty_like equal fill fill_ flip full_like gather
    grid_sampler_2d histc im2col index index_add index_add_ index_copy index_fill index_put index_put_ index_select
    kthvalue logcumsumexp masked_scatter masked_select max_pool2d_with_indices max_pool2d_with_indices_backward
    max_pool3d_with_indices median mode mse_loss_backward multinomial native_batch_norm native_batch_norm_backward
    native_dropout native_group_norm native_group_norm_backward native_layer_norm native_layer_norm_backward new_empty
    new_empty_strided new_full new_ones new_zeros nll_loss2d_backward nll_loss2d_forward nll_loss_backward
    nll_loss_forward nonzero normal_ one_hot ones_like pixel_shuffle pixel_unshuffle rand_like randn_like random_
    reflection_pad1d reflection_pad2d repeat repeat_interleave replication_pad1d replication_pad2d resize_ roll
    scatter scatter_ scatter_add scatter_add_ scatter_reduce select_backward select_scatter set_ slice_backward
    slice_scatter smooth_l1_loss smooth_l1_loss_backward sort split_with_sizes_copy stack topk trace tril triu unfold
    unfold_backward uniform_ unique_consecutive unique_dim unsafe_split unsafe_split_with_sizes upsample_bicubic2d
    upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d zero zero_ zeros_like _unique2
    _to_sparse _to_sparse_csr _to_dense _coalesce _coalesced_ _indices _values _nnz crow_indices col_indices
    _local_scalar_dense _sparse_coo_tensor_with_dims_and_tensors _sparse_compressed_tensor_unsafe
    _batch_norm_with_update _fused_rms_norm
    """.split()  # noqa: SIM905
)
ELEMENTWISE = {torch.Tag.pointwise, torch.Tag.reduction, torch.Tag.inplace_view, torch.Tag.view_copy}


class UncountedOps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects every op that does floating-point arithmetic by no known rule. Enter it before the flop counter."""

    def __init__(self, known: set[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = known
        self.unknown: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = getattr(func, "_overloadpacket", func)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if packet in self.known:
            both_sparse = len(tensors) > 1 and all(each.layout != torch.strided for each in tensors[-2:])
            free = not both_sparse  # the work depends on which entries coincide
        else:
            free = not any(each.is_floating_point() or each.is_complex() for each in tensors) or _is_free(func, packet)
        if not free:
            self.unknown.add(str(packet))
        return func(*args, **(kwargs or {}))


def _is_free(func: Any, packet: Any) -> bool:
    if getattr(func, "namespace", "") not in ("aten", "prim", "prims"):
        return False
    name = getattr(packet, "__name__", "")
    return name in FREE or func.is_view or bool(ELEMENTWISE & set(func.tags)) or name in ("detach", "alias", "clone")


def _product(first: Tensor, second: Tensor, *_: Any, **__: Any) -> int:
    """[..., m, k] times [..., k, n] or [k]; of a sparse factor only the entries."""
    columns = second.shape[-1] if second.ndim > 1 else 1
    if first.layout != torch.strided:
        return 2 * first._nnz() * columns
    if second.layout != torch.strided:
        return 2 * second._nnz() * first.shape[-2]
    return 2 * first.numel() * columns


def _added(_: Tensor, first: Tensor, second: Tensor, *__: Any, **___: Any) -> int:
    return _product(first, second)


def _attention(q: Tensor, k: Tensor, v: Tensor, *_: Any, **__: Any) -> int:
    return 2 * prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _attention_backward(above: Tensor, q: Tensor, k: Tensor, v: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(above.shape, q.shape, k.shape, v.shape))  # type: ignore[no-untyped-call]


def _bags(table: Tensor, places: Tensor, *_: Any, **__: Any) -> int:
    """Sums of rows of a table, weighted or not: the product with a sparse matrix of one entry per index."""
    return 2 * places.numel() * table.shape[-1]


def _recurrent(x: Tensor, first: Tensor, second: Tensor, *_: Any, **__: Any) -> int:
    """One layer in one direction: x [T, B, I], weights [gates H, I] and [gates H, H]."""
    return 2 * prod(x.shape[:-1]) * (first.numel() + second.numel())


def _recurrent_backward(x: Tensor, first: Tensor, second: Tensor, *_: Any, **__: Any) -> int:
    return 2 * _recurrent(x, first, second)


def _recurrent_cuda(x: Tensor, weights: list[Tensor], *_: Any, **__: Any) -> int:
    return 2 * prod(x.shape[:-1]) * sum(weight.numel() for weight in weights if weight.ndim == 2)


def _convs(x: Tensor, weight: Tensor, *_: Any, out_val: Any = None, **__: Any) -> int:
    """`tiebreak::conv`: weight [n, O, C, P, Q], out [n, B, O, H', W']."""
    return 2 * int(out_val.numel()) * prod(weight.shape[2:])


def _convs_input_gradient(dy: Tensor, weight: Tensor, *_: Any, **__: Any) -> int:
    return 2 * dy.numel() * prod(weight.shape[2:])


def _convs_weight_gradient(dy: Tensor, x: Tensor, kernel: list[int], *_: Any, **__: Any) -> int:
    return 2 * dy.numel() * x.shape[2] * prod(kernel)


ATEN: dict[str, Rule] = {
    "mm": _product,
    "bmm": _product,
    "mv": _product,
    "dot": _product,
    "vdot": _product,
    "_sparse_mm": _product,
    "addmm": _added,
    "addmv": _added,
    "baddbmm": _added,
    "_sparse_addmm": _added,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "_embedding_bag": _bags,
    "_embedding_bag_forward_only": _bags,
    "mkldnn_rnn_layer": _recurrent,
    "mkldnn_rnn_layer_backward": _recurrent_backward,
    "_cudnn_rnn": _recurrent_cuda,
}
OURS: dict[str, Rule] = {
    "conv": _convs,
    "conv_input_gradient": _convs_input_gradient,
    "conv_weight_gradient": _convs_weight_gradient,
    "product": _product,
}


def rules() -> dict[Any, Rule]:
    """By op, for `FlopCounterMode(custom_mapping=...)`. Our own ops are included once they are imported."""
    found: dict[Any, Rule] = {}
    for space, table in ((aten, ATEN), (torch.ops.tiebreak, OURS)):
        found.update({getattr(space, name): rule for name, rule in table.items() if hasattr(space, name)})
    for rule in found.values():
        rule._get_raw = True  # type: ignore[attr-defined]  # tensors, not their shapes
    return found


def known() -> set[Any]:
    """Ops with a rule, torch's or ours."""
    return {*flop_registry, *rules()}

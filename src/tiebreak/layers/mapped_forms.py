"""The forms of torch's functions that fold the runs into the batch under vmap.

`F.scaled_dot_product_attention`, alone or in `nn.MultiheadAttention` and the transformer layers, calls kernels that
have no rule for vmap: torch then goes run by run, and warns. Its plain form, products and a softmax, has rules for all
of its operations. Under vmap autocast acts below the gradient: it rounds or widens operands of which the gradient
knows other types, and fails. So attention gets rounded operands here and computes without autocast: bfloat16 products
and a softmax that is float32 inside, as in the fused kernels. Long sequences take the fused kernels, with a rule for
vmap of our own: see `long_attention`. Packed sequences have no rule at all, see `packed_rows`.
Layer normalisation on a GPU is one kernel, see `mapped_norm`. `nn.TransformerEncoder` and `nn.TransformerDecoder` look
at the values of a mask, to tell a causal one, unless they are told: here they take the mask as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules import transformer
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from tiebreak.layers.long_attention import attend_if_long
from tiebreak.layers.mapped_functions import FORMS, unchecked_distributions
from tiebreak.layers.mapped_norm import normalise
from tiebreak.layers.mapped_rules import add_mapped_rules
from tiebreak.layers.packed_rows import PackingAsPadding
from tiebreak.layers.uncompiled import as_written

_attend = F.scaled_dot_product_attention
_look_at_mask = transformer._detect_is_causal_mask
NORMS = (F.layer_norm, torch.layer_norm)


def _attention(*args: Any, **kwargs: Any) -> Tensor:
    """torch's attention; under autocast of rounded operands, without autocast inside."""
    if (found := _long(*args, **kwargs)) is not None:
        return found
    (first, *_), kind = pytree.tree_leaves((args, kwargs)), "cpu"
    if isinstance(first, Tensor):
        kind = first.device.type
    if not torch.is_autocast_enabled(kind):
        return _attend(*args, **kwargs)
    kept = torch.get_autocast_dtype(kind)
    args, kwargs = pytree.tree_map_only(
        Tensor, lambda values: values.to(kept) if values.is_floating_point() else values, (args, kwargs)
    )
    with torch.autocast(kind, enabled=False):
        return _attend(*args, **kwargs)


def _long(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor | None:
    """Attention over a long sequence; None if it is short, or has what its kernels do not take."""
    if dropout_p > 0 or enable_gqa or (is_causal and attn_mask is not None):
        return None
    return attend_if_long(query, key, value, mask=attn_mask, causal=is_causal, scale=scale)


class _Forms(TorchFunctionMode):
    """Catches the functions under any name; inside torch's own Python functions a mode is not active."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in NORMS and (found := normalise(*args, **given)) is not None:
            return found
        if func in FORMS and (result := FORMS[func](*args, **given)) is not NotImplemented:
            return result
        return (_attention if func is _attend else func)(*args, **given)


def _mask_as_it_is(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    return bool(is_causal)


@contextmanager
def mapped_forms() -> Iterator[None]:
    """Inside the block, functions that a network calls take the form that can be mapped over runs."""
    # A flag of CPUs too, in spite of its name: no widening of bfloat16 operands.
    flag = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    add_mapped_rules()
    F.scaled_dot_product_attention = _attention  # for F.multi_head_attention_forward, which reads it there
    transformer._detect_is_causal_mask = _mask_as_it_is
    try:
        with as_written(), unchecked_distributions(), sdpa_kernel(SDPBackend.MATH), PackingAsPadding(), _Forms():
            yield
    finally:
        F.scaled_dot_product_attention = _attend
        transformer._detect_is_causal_mask = _look_at_mask
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(flag)

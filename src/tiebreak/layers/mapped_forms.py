"""The forms of torch's functions that fold the runs into the batch under vmap.

`F.scaled_dot_product_attention`, alone or in `nn.MultiheadAttention` and the transformer layers, calls kernels that
have no rule for vmap: torch then goes run by run, and warns. Its plain form, products and a softmax, has
rules for all of its operations. Of bfloat16 inputs that form widens its factors to float32; under vmap autocast then
rounds them a second time, behind the back of the gradient, which fails. So the factors stay as they are here: bfloat16
products and a softmax that is float32 inside, as in the fused kernels and in attention written by hand under autocast.
Packed sequences have no rule at all, see `packed_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tiebreak.layers.packed_rows import PackingAsPadding


@contextmanager
def mapped_forms() -> Iterator[None]:
    """Inside the block, functions that a network calls take the form that can be mapped over runs."""
    # A flag of CPUs too, in spite of its name.
    flag = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        with sdpa_kernel(SDPBackend.MATH), PackingAsPadding():
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(flag)

"""The forms of torch's functions that fold the runs into the batch under vmap.

`F.scaled_dot_product_attention`, alone or in `nn.MultiheadAttention` and the transformer layers, calls kernels that
have no rule for vmap: torch then goes run by run, and warns. Its plain form, products and a softmax, has
rules for all of its operations. Packed sequences have no rule at all, see `packed_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.nn.attention import SDPBackend, sdpa_kernel

from tiebreak.layers.packed_rows import PackingAsPadding


@contextmanager
def mapped_forms() -> Iterator[None]:
    """Inside the block, functions that a network calls take the form that can be mapped over runs."""
    with sdpa_kernel(SDPBackend.MATH), PackingAsPadding():
        yield

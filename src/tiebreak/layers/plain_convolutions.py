"""Our convolutions without their kernels: the loops over runs that specify them. For a first call whose numbers do not
count, so that the kernels can be compiled all at once later (`kernels.compile_ahead`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tiebreak.layers import product_conv, stacked_conv

AHEAD = os.environ.get("TIEBREAK_AHEAD") == "1"  # off until it has been measured
OPS = (
    stacked_conv.conv,
    stacked_conv.conv_input_gradient,
    stacked_conv.conv_weight_gradient,
    product_conv.product_conv,
    product_conv.product_conv_input,
    product_conv.product_conv_weight,
)


@contextmanager
def plain_convolutions() -> Iterator[None]:
    """Inside, convolutions on a GPU run without our kernels."""
    with ExitStack() as stack:
        for op in OPS if AHEAD else ():
            stack.enter_context(op.set_kernel_enabled("cuda", enabled=False))
        yield

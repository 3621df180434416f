"""Sizes and costs as formulas on plain integers. No torch."""

from __future__ import annotations

from tiebreak.errors import TiebreakError


def conv_size(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Outputs of a convolution along one side: floor((size + 2 padding - dilation (kernel-1) - 1) / stride) + 1.

    >>> conv_size(28, 3, stride=2, padding=1)
    14
    """
    reach = dilation * (kernel - 1) + 1
    if size + 2 * padding < reach:
        raise TiebreakError(f"a side of {size} pixels is smaller than the {reach} that the filter covers")
    return (size + 2 * padding - reach) // stride + 1


def run_bytes(parameters: int, slots: int, activations: int, *, size: int = 4) -> int:
    """Memory of one run in training: values, gradients and the update rule's `slots` per parameter, and activations.

    >>> run_bytes(1000, 2, 500)
    16500
    """
    return size * parameters * (2 + slots) + activations

"""Numbers of rows, columns and places, kept out of 16 bits: ptxas adds those wrongly.

The compiler knows that such numbers are small and packs two of them into a register. ptxas 12.8 to 13.0 then loses the
constant of the second of two packed additions (triton-lang/triton issue 11581; `add.s16x2`). On an H200 values at the
edge of an image were left out, or taken from outside of it: the same ones each time, in some kernels and not in others.
So a zero is added that no compiler can know: then nothing is known to be small.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def wide(values):
    """The same integers, not known to be small."""
    return values + tl.program_id(2) * 16  # grids have one axis; the factor leaves what is known of alignment


@triton.jit
def within(h, w, H: tl.constexpr, W: tl.constexpr):
    """Whether the places (h, w) lie in an image of size H x W."""
    h, w = wide(h), wide(w)
    return (h >= 0) & (h < H) & (w >= 0) & (w < W)

"""What the kernels of Taylor attention share: features made by matrix products, and the loading of tiles.

    phi_f(x) = (x[first_f] or 1) (x[second_f] or 1),   p(s q . k) = sum_f weight_f phi_f(q) phi_f(k)

x [C, D] times a matrix of zeros and ones picks columns: x P1 and x P2 [C, W] are exact, come out of the tensor cores in
the registers where the next product wants its left operand, and their product is a block of W features. Nothing is
gathered. The gradient of x goes back the same way: (U * x P2) P1^T + (U * x P1) P2^T.

Products of two entries are packed by their distance around the circle: block by block x[a] x[(a + t) mod D] for
t = 0 ... D/2 - 1 has every pair once except those at distance D/2. That is D^2 / 2 features, a power of two. The D/2
pairs that are left, the D entries and the 1 make up the `low` block: at D = 16, 128 + 25 of 153, stored as 128 + 32.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Triton takes no structures: every size is a constant of its own.


@triton.jit
def quadratic(start, scale, W: tl.constexpr, D: tl.constexpr):
    """Features start ... start + W - 1 of the second order: both indices, and the weight."""
    f = start + tl.arange(0, W)
    first = f % D
    return first, (first + f // D) % D, tl.where(f < D, 0.5, 1.0) * scale * scale


@triton.jit
def low(scale, W: tl.constexpr, D: tl.constexpr, TERMS: tl.constexpr):
    """The low block: D/2 pairs, D entries, 1, and zeros. An index of -1 is no entry; then `one` says whether 1 or 0."""
    f = tl.arange(0, W)
    linear, constant = (f >= D // 2) & (f < D // 2 + D), f == D // 2 + D
    first = tl.where(linear, f - D // 2, -1)
    second = tl.full((W,), -1, tl.int32)
    weight = tl.where(linear, scale, 1.0)
    if TERMS == 3:
        pair = f < D // 2
        first = tl.where(pair, f, first)
        second = tl.where(pair, f + D // 2, second)
        weight = tl.where(pair, scale * scale, weight)
    return first, second, constant.to(tl.float32), (linear | constant).to(tl.float32), weight


@triton.jit
def pick(index, W: tl.constexpr, D: tl.constexpr, TYPE: tl.constexpr):
    """The matrix [D, W] of zeros and ones that picks the columns `index`."""
    return (tl.arange(0, D)[:, None] == index[None, :]).to(TYPE)


@triton.jit
def times(a, b, PRECISION: tl.constexpr):
    """a b."""
    return tl.dot(a, b, input_precision="ieee" if PRECISION == "emulated" else PRECISION)


@triton.jit
def plus_times(a, b, total, PRECISION: tl.constexpr):
    """total + a b."""
    return tl.dot(a, b, total, input_precision="ieee" if PRECISION == "emulated" else PRECISION)


@triton.jit
def narrow(x, TYPE: tl.constexpr, PRECISION: tl.constexpr):
    """float32 as an operand. "emulated": bfloat16 in Triton's interpreter, which cuts off and cannot multiply it."""
    if PRECISION == "emulated":
        bits = x.to(tl.uint32, bitcast=True)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).to(tl.uint32).to(tl.float32, bitcast=True)
    return x.to(TYPE)


@triton.jit
def tile(
    base, start, stride, length, ROWS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, TYPE: tl.constexpr
):
    """Rows start ... start + ROWS - 1 of a matrix [length, WIDTH], with zeros around it."""
    row, column = tl.arange(0, ROWS), tl.arange(0, PADDED)
    inside = (start + row < length)[:, None]
    if WIDTH < PADDED:
        inside = inside & (column < WIDTH)[None, :]
    start = tl.cast(start, tl.int64)
    return tl.load(base + start * stride + row[:, None] * stride + column[None, :], mask=inside, other=0.0).to(TYPE)


@triton.jit
def put(base, values, start, stride, length, ROWS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Write what `tile` reads."""
    row, column = tl.arange(0, ROWS), tl.arange(0, PADDED)
    inside = (start + row < length)[:, None]
    if WIDTH < PADDED:
        inside = inside & (column < WIDTH)[None, :]
    start = tl.cast(start, tl.int64)
    tl.store(base + start * stride + row[:, None] * stride + column[None, :], values, mask=inside)


@triton.jit
def entries(base, start, length, other, ROWS: tl.constexpr):
    """Entries start ... start + ROWS - 1 of a vector."""
    row = start + tl.arange(0, ROWS)
    return tl.load(base + row, mask=row < length, other=other)


@triton.jit
def allowed(may, start, stride, length, ROWS: tl.constexpr):
    """Which of the keys start ... start + ROWS - 1 may be looked at."""
    row = start + tl.arange(0, ROWS)
    return tl.load(may + row.to(tl.int64) * stride, mask=row < length, other=0) != 0


@triton.jit
def hide(rows, here):
    """Zeros in place of masked rows: padding may be anything, even NaN."""
    return tl.where(here[:, None], rows, 0.0).to(rows.dtype)


@triton.jit
def polynomial(x, scale, TERMS: tl.constexpr):
    """p(s x)."""
    if TERMS == 3:
        return (x * (0.5 * scale * scale) + scale) * x + 1.0
    return x * scale + 1.0


@triton.jit
def slope(x, scale, TERMS: tl.constexpr):
    """p'(s x)."""
    if TERMS == 3:
        return x * scale + 1.0
    return tl.full(x.shape, 1.0, tl.float32)

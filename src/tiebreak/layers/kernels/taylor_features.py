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
# ruff: noqa: PLR0913, PLR0917


@triton.jit
def quadratic(start, scale, W: tl.constexpr, D: tl.constexpr):
    """Features start ... start + W - 1 of the second order: both indices, and the weight.

    W is a multiple of D, so the first index is the same in every block.
    """
    f = start + tl.arange(0, W)
    first = tl.arange(0, W) % D
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
def any_features(start, scale, W: tl.constexpr, D: tl.constexpr, QUADRATIC: tl.constexpr, TERMS: tl.constexpr):
    """Features start ... start + W - 1 of both kinds, as `low` gives them; zeros after the last."""
    f = start + tl.arange(0, W)
    g = f - QUADRATIC
    linear, constant = (g >= D // 2) & (g < D // 2 + D), g == D // 2 + D
    first = tl.where(linear, g - D // 2, -1)
    second = tl.full((W,), -1, tl.int32)
    weight = tl.where(linear, scale, 1.0)
    if TERMS == 3:
        pair, paired = (g >= 0) & (g < D // 2), g < 0
        first = tl.where(paired, f % D, tl.where(pair, g, first))
        second = tl.where(paired, (f % D + f // D) % D, tl.where(pair, g + D // 2, second))
        weight = tl.where(g < D // 2, tl.where(f < D, 0.5, 1.0) * scale * scale, weight)
    return first, second, constant.to(tl.float32), (linear | constant).to(tl.float32), weight


@triton.jit
def pick(index, W: tl.constexpr, D: tl.constexpr, TYPE: tl.constexpr):
    """The matrix [D, W] of zeros and ones that picks the columns `index`."""
    return (tl.arange(0, D)[:, None] == index[None, :]).to(TYPE)


@triton.jit
def low_factors(
    x, scale, W: tl.constexpr, DF: tl.constexpr, DP: tl.constexpr,
    TERMS: tl.constexpr, TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The two factors of the features in the low block of x [C, D], and the matrices that pick them."""
    first, second, one_first, one_second, _weight = low(scale, W, DF, TERMS)
    pick_first, pick_second = pick(first, W, DP, TYPE), pick(second, W, DP, TYPE)
    left = times(x, pick_first, PRECISION) + one_first[None, :]
    return left, times(x, pick_second, PRECISION) + one_second[None, :], pick_first, pick_second


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
def tile(base, start, stride, length, ROWS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Rows start ... start + ROWS - 1 of a matrix [length, WIDTH], with zeros around it, in the matrix's type."""
    row, column = tl.arange(0, ROWS), tl.arange(0, PADDED)
    inside = (start + row < length)[:, None]
    if WIDTH < PADDED:
        inside = inside & (column < WIDTH)[None, :]
    start = tl.cast(start, tl.int64)
    return tl.load(base + start * stride + row[:, None] * stride + column[None, :], mask=inside, other=0.0)


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
def pairs(
    k, v, may, start, k_l, v_l, may_l, length,
    D: tl.constexpr, V: tl.constexpr, DP: tl.constexpr, VP: tl.constexpr, MASKED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """N keys, their values, and which of them may be looked at (if MASKED)."""
    here = tl.full((N,), True, tl.int1)
    if MASKED:
        here = allowed(may, start, may_l, length, N)
    return tile(k, start, k_l, length, N, D, DP), tile(v, start, v_l, length, N, V, VP), here


@triton.jit
def copied_rows(x, b, h, start, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """`tile` of one head, where x is a descriptor of all of them: the hardware copies, ahead of time."""
    return x.load([b.to(tl.int32), h.to(tl.int32), start, 0]).reshape(ROWS, WIDTH)


@triton.jit
def block(states, norms, start, end, W: tl.constexpr, V: tl.constexpr, VP: tl.constexpr):
    """Features start ... start + W - 1 of a state [., V] and of its norms, zeros from `end` on."""
    f, column = start + tl.arange(0, W), tl.arange(0, VP)
    inside = (f < end)[:, None]
    if V < VP:
        inside = inside & (column < V)[None, :]
    state = tl.load(states + f[:, None] * V + column[None, :], mask=inside, other=0.0)
    return state, tl.load(norms + f, mask=f < end, other=0.0)


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
    """s p'(s x)."""
    if TERMS == 3:
        return x * (scale * scale) + scale
    return tl.zeros_like(x) + scale

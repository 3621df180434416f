"""Convolutions as implicit matrix products, one tap after the other: what `conv_products` uses from 16 channels on.

A step of the sum has one tap, so that its place in the filter is a number and not a tensor: a program computes an
address per row of its tile, and a mask per row, where the general kernels have one per number. What is read along the
sum should lie together: x and dy with channels last, the weight as [tap, column, inner].

The input gradient of a layer with a stride: places of one remainder read the same taps, so each remainder is a product
of its own with those taps only. The weight gradient reads dy once for up to three taps, and is split over the places
into parts, which the caller sums.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tiebreak.layers.kernels.places import wide, within

# ruff: noqa: PLR0913, PLR0917


@triton.jit
def gather_taps(
    x, weight, bias, y,
    x_run: tl.constexpr, x_b: tl.constexpr, x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr,
    w_run: tl.constexpr, w_group: tl.constexpr, w_n: tl.constexpr, w_c: tl.constexpr,
    w_p: tl.constexpr, w_q: tl.constexpr,
    y_run: tl.constexpr, y_b: tl.constexpr, y_n: tl.constexpr, y_h: tl.constexpr, y_w: tl.constexpr,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, GROUPS: tl.constexpr,
    MV: tl.constexpr, MH: tl.constexpr, OV: tl.constexpr, OH: tl.constexpr, TV: tl.constexpr, TH: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr,
    BIASED: tl.constexpr, PRECISION: tl.constexpr, WIDEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Place i = a SV + r of y reads x at a MV + OV + (r + ZV) // SV + t TV, with tap (r + ZV) % SV + t SV."""
    high: tl.constexpr = (HO + SV - 1) // SV
    across: tl.constexpr = (WO + SH - 1) // SH
    rows: tl.constexpr = ROWS * high * across
    tiles_n: tl.constexpr = (N + BN - 1) // BN
    tiles: tl.constexpr = (rows + BM - 1) // BM * tiles_n
    tile, batch = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    left_v, left_h, batch = batch % SV, batch // SV % SH, batch // (SV * SH)
    group, run = batch % GROUPS, (batch // GROUPS).to(tl.int64)
    first_p, first_q = (left_v + ZV) % SV, (left_h + ZH) % SH
    taps_q = (Q - first_q + SH - 1) // SH
    taps = (P - first_p + SV - 1) // SV * taps_q
    x += run * x_run + group * C * x_c
    weight += run * w_run + group * w_group + first_p * w_p + first_q * w_q
    m = wide(tile // tiles_n * BM + tl.arange(0, BM))
    n = tile % tiles_n * BN + tl.arange(0, BN)
    c = tl.arange(0, BK)
    row, place = m // (high * across), wide(m % (high * across))
    a, b = place // across, place % across
    i, j = a * SV + left_v, b * SH + left_h
    h, w = a * MV + (OV + (left_v + ZV) // SV), b * MH + (OH + (left_h + ZH) // SH)
    valid = m < rows
    at = row * x_b + h * x_h + w * x_w
    column = n < N
    total = tl.zeros((BM, BN), tl.float32)
    parts: tl.constexpr = (C + BK - 1) // BK
    for step in range(0, taps * parts):
        tap, start = step // parts, step % parts * BK
        p, q = tap // taps_q, tap % taps_q
        down, right = p * TV, q * TH
        inside = valid & within(h + down, w + right, H, W)
        where = at + (down * x_h + right * x_w + start * x_c)
        taken = weight + (p * (SV * w_p) + q * (SH * w_q) + start * w_c)
        if C % BK == 0:
            left = tl.load(x + where[:, None] + (c * x_c)[None, :], mask=inside[:, None], other=0.0)
            above = tl.load(taken + (c * w_c)[:, None] + (n * w_n)[None, :], mask=column[None, :], other=0.0)
        else:
            real = start + c < C
            left = tl.load(x + where[:, None] + (c * x_c)[None, :], mask=inside[:, None] & real[None, :], other=0.0)
            above = tl.load(
                taken + (c * w_c)[:, None] + (n * w_n)[None, :], mask=real[:, None] & column[None, :], other=0.0
            )
        if WIDEN:
            left, above = left.to(tl.float32), above.to(tl.float32)
        total = tl.dot(left, above, total, input_precision=PRECISION)
    if BIASED:
        total += tl.load(bias + (run * GROUPS + group) * N + n, mask=column, other=0.0).to(tl.float32)[None, :]
    found = valid & (i < HO) & (j < WO)
    out = y + run * y_run + (row * y_b + i * y_h + j * y_w)[:, None] + ((group * N + n) * y_n)[None, :]
    tl.store(out, total, mask=found[:, None] & column[None, :])


@triton.jit
def _tap(
    x, above, total, tap, at, i, j, here, real, c,
    x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    Q: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr, PRECISION: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """The sum of a tap with the products of these places."""
    down, right = tap // Q * DV, tap % Q * DH
    inside = here & within(i + down, j + right, H, W)
    where = at + (down * x_h + right * x_w)
    value = tl.load(x + where[:, None] + (c * x_c)[None, :], mask=inside[:, None] & real[None, :], other=0.0)
    if WIDEN:
        value = value.to(tl.float32)
    return tl.dot(above, value, total, input_precision=PRECISION)


@triton.jit
def weight_taps(
    dy, x, dw,
    y_run: tl.constexpr, y_b: tl.constexpr, y_n: tl.constexpr, y_h: tl.constexpr, y_w: tl.constexpr,
    x_run: tl.constexpr, x_b: tl.constexpr, x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, GROUPS: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
    CHUNK: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr, WIDEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The parts of dw for a tile of outputs and inputs and up to three taps."""
    places: tl.constexpr = HO * WO
    taps: tl.constexpr = P * Q
    each: tl.constexpr = 3 if taps > 1 else 1
    sets: tl.constexpr = (taps + each - 1) // each
    tiles_n: tl.constexpr = (C + BN - 1) // BN
    tiles: tl.constexpr = (N + BM - 1) // BM * tiles_n
    tile, batch = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    tap, batch = batch % sets * each, batch // sets  # neighbours read the same rows
    part, batch = batch % PARTS, batch // PARTS
    group, run = batch % GROUPS, (batch // GROUPS).to(tl.int64)
    dy += run * y_run + group * N * y_n
    x += run * x_run + group * C * x_c
    # Past the last tap, it once more: the same numbers in the same place.
    second, third = tl.minimum(tap + 1, taps - 1), tl.minimum(tap + 2, taps - 1)
    o = tile // tiles_n * BM + tl.arange(0, BM)
    c = tile % tiles_n * BN + tl.arange(0, BN)
    real = c < C
    one = tl.zeros((BM, BN), tl.float32)
    two = tl.zeros((BM, BN), tl.float32)
    three = tl.zeros((BM, BN), tl.float32)
    for start in range(part * CHUNK, tl.minimum(part * CHUNK + CHUNK, ROWS * places), BK):
        m = wide(start + tl.arange(0, BK))
        here = (m < ROWS * places) & (m < part * CHUNK + CHUNK)
        row, place = m // places, wide(m % places)
        i, j = place // WO, place % WO
        found = dy + (row * y_b + i * y_h + j * y_w)[:, None] + (o * y_n)[None, :]
        above = tl.trans(tl.load(found, mask=here[:, None] & (o < N)[None, :], other=0.0))
        if WIDEN:
            above = above.to(tl.float32)
        i, j = i * SV - ZV, j * SH - ZH
        at = row * x_b + i * x_h + j * x_w
        one = _tap(x, above, one, tap, at, i, j, here, real, c, x_c, x_h, x_w, H, W, Q, DV, DH, PRECISION, WIDEN)
        if each > 1:
            two = _tap(x, above, two, second, at, i, j, here, real, c, x_c, x_h, x_w, H, W, Q, DV, DH, PRECISION, WIDEN)
            three = _tap(
                x, above, three, third, at, i, j, here, real, c,
                x_c, x_h, x_w, H, W, Q, DV, DH, PRECISION, WIDEN,
            )  # fmt: skip
    # dw [run, part, tap, output, input]
    out = dw + (run * PARTS + part) * (taps * GROUPS * N * C) + ((group * N + o) * C)[:, None] + c[None, :]
    inside = (o < N)[:, None] & real[None, :]
    tl.store(out + tap * (GROUPS * N * C), one, mask=inside)
    if each > 1:
        tl.store(out + second * (GROUPS * N * C), two, mask=inside)
        tl.store(out + third * (GROUPS * N * C), three, mask=inside)

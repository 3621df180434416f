"""The ops of `stacked_conv` on a GPU. Nothing is unfolded in memory; inputs are read straight from the images.

    forward           y[o, n]   = bias[o] + sum over c, p, q of  weight[o, c, p, q]  x at (c, n, p, q)
    input gradient    dx[c, n]  =           sum over o, p, q of  weight[o, c, p, q]  dy at (o, n, p, q)
    weight gradient   dw[o, k]  =           sum over n       of  dy[o, n]            x at (k, n),   k = (c, p, q)

n runs over the places of all images of a run's batch. With the few channels of small networks the first two are best
done by plain multiply-adds, a tile of channels times places in registers; the third sums over many places and is a
matrix product, as three TF32 products: the precision of float32 (where TF32 is allowed, one). The bias is one more
column of it, where x is 1.
Sizes are compile-time constants, blocks do not depend on the number of runs, and sums have a fixed order: a run's
numbers do not depend on the runs computed with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.places import wide, within
from tiebreak.layers.kernels.product import input_precision

# Triton compiles a kernel for its parameters: it takes no structures, and every size must be a constant of its own.
# So there are up to 23 of them; the functions that launch the kernels take at most five.
# ruff: noqa: E741, PLR0913, PLR0917
Geometry = tuple[Sequence[int], Sequence[int], Sequence[int]]  # stride, padding, dilation, each (vertical, horizontal)


@triton.jit
def _forward(
    x, weight, bias, y,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    O: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    places: tl.constexpr = HO * WO
    tiles_n = tl.cdiv(ROWS * places, BN)
    tiles = tl.cdiv(O, BM) * tiles_n
    tile, run = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    x += run * (ROWS * C * H * W)
    weight += run * (O * C * P * Q)
    y += run * (ROWS * O * places)
    o = tile // tiles_n * BM + tl.arange(0, BM)
    n = wide(tile % tiles_n * BN + tl.arange(0, BN))
    row, place = n // places, wide(n % places)
    h, w = place // WO * SV - ZV, place % WO * SH - ZH
    start = row * (C * H * W) + h * W + w
    total = tl.zeros((BM, BN), tl.float32) + tl.load(bias + run * O + o, mask=o < O, other=0.0)[:, None]
    for c in range(C):
        for tap in tl.static_range(P * Q):
            down = tap // Q * DV
            right = tap % Q * DH
            inside = n < ROWS * places
            if ZV > 0 or ZH > 0:
                inside = inside & within(h + down, w + right, H, W)
            value = tl.load(x + start + (c * H * W + down * W + right), mask=inside, other=0.0)
            taps = tl.load(weight + o * (C * P * Q) + c * (P * Q) + tap, mask=o < O, other=0.0)
            total += taps[:, None].to(tl.float32) * value[None, :].to(tl.float32)
    where = y + (row * (O * places) + place)[None, :] + o[:, None] * places
    tl.store(where, total, mask=(o < O)[:, None] & (n < ROWS * places)[None, :])


@triton.jit
def _input_gradient(
    dy, weight, dx,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    O: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    places: tl.constexpr = H * W
    tiles_n = tl.cdiv(ROWS * places, BN)
    tiles = tl.cdiv(C, BM) * tiles_n
    tile, run = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    dy += run * (ROWS * O * HO * WO)
    weight += run * (O * C * P * Q)
    dx += run * (ROWS * C * places)
    c = tile // tiles_n * BM + tl.arange(0, BM)
    n = wide(tile % tiles_n * BN + tl.arange(0, BN))
    row, place = n // places, wide(n % places)
    total = tl.zeros((BM, BN), tl.float32)
    for o in range(O):
        for tap in tl.static_range(P * Q):
            down = ZV - tap // Q * DV
            right = ZH - tap % Q * DH
            h, w = place // W + down, place % W + right  # the stride times where this tap's output lies
            inside = (n < ROWS * places) & within(h, w, HO * SV, WO * SH)
            if SV > 1:
                inside = inside & (h % SV == 0)
            if SH > 1:
                inside = inside & (w % SH == 0)
            value = tl.load(dy + (row * O + o) * (HO * WO) + h // SV * WO + w // SH, mask=inside, other=0.0)
            taps = tl.load(weight + (o * C + c) * (P * Q) + tap, mask=c < C, other=0.0)
            total += taps[:, None].to(tl.float32) * value[None, :].to(tl.float32)
    where = dx + (row * (C * places) + place)[None, :] + c[:, None] * places
    tl.store(where, total, mask=(c < C)[:, None] & (n < ROWS * places)[None, :])


@triton.jit
def _weight_gradient(
    dy, x, dw,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    O: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
    CHUNK: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    columns: tl.constexpr = C * P * Q + 1  # the last is the bias
    places: tl.constexpr = HO * WO
    tiles_n = tl.cdiv(columns, BN)
    tiles = tl.cdiv(O, BM) * tiles_n
    tile, batch = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    run, part = batch // PARTS, batch % PARTS
    dy += (run * ROWS + part * CHUNK) * (O * places)
    x += (run * ROWS + part * CHUNK) * (C * H * W)
    rows = tl.minimum(ROWS - part * CHUNK, CHUNK).to(tl.int32)
    o = tile // tiles_n * BM + tl.arange(0, BM)
    k = wide(tile % tiles_n * BN + tl.arange(0, BN))
    h, w = k % (P * Q) // Q * DV - ZV, k % Q * DH - ZH
    column = k // (P * Q) * (H * W) + h * W + w
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, CHUNK * places, BK):
        n = wide(start + tl.arange(0, BK))
        row, place = n // places, wide(n % places)
        i, j = place // WO * SV, place % WO * SH
        here = row < rows
        inside = here[:, None] & (k < columns - 1)[None, :]
        if ZV > 0 or ZH > 0:
            down, right = i[:, None] + h[None, :], j[:, None] + w[None, :]
            inside = inside & within(down, right, H, W)
        value = tl.load(x + (row * (C * H * W) + i * W + j)[:, None] + column[None, :], mask=inside, other=0.0)
        value = tl.where((k == columns - 1)[None, :] & here[:, None], 1.0, value).to(x.dtype.element_ty)
        above = tl.load(
            dy + (row * (O * places) + place)[None, :] + o[:, None] * places,
            mask=(o < O)[:, None] & here[None, :],
            other=0.0,
        )
        total = tl.dot(above, value, total, input_precision=PRECISION)
    tl.store(
        dw + (batch * O + o)[:, None] * columns + k[None, :], total, mask=(o < O)[:, None] & (k < columns)[None, :]
    )


def _side(size: int, most: int) -> int:
    return min(most, max(16, int(triton.next_power_of_2(size))))


def _tile(channels: int, places: int) -> tuple[int, int]:
    """Channels and places of a tile. With 128 places more programs run, but each weight is read for fewer: slower."""
    most = min(16, triton.next_power_of_2(channels))
    return most, min(512, max(64, triton.next_power_of_2(places)))


def forward(x: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int], geometry: Geometry) -> Tensor:
    """y [n, B, O, H', W'] of x [n, B, C, H, W]."""
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    runs, rows, inputs = x.shape[:3]
    outputs, places = weight.shape[1], rows * sizes[0] * sizes[1]
    y = x.new_empty(runs, rows, outputs, *sizes)
    m, n = _tile(outputs, places)
    shape = (rows, inputs, *x.shape[-2:], outputs, *weight.shape[-2:], *sizes)
    grid = (runs * triton.cdiv(outputs, m) * triton.cdiv(places, n),)
    _forward[grid](x, weight, bias, y, *shape, *_flat(geometry), m, n, num_warps=4)
    return y


def input_gradient(dy: Tensor, weight: Tensor, size: Sequence[int], geometry: Geometry) -> Tensor:
    """dx [n, B, C, H, W] of dy [n, B, O, H', W']."""
    dy, weight = dy.contiguous(), weight.contiguous()
    runs, rows, outputs = dy.shape[:3]
    inputs, places = weight.shape[2], rows * size[0] * size[1]
    dx = dy.new_empty(runs, rows, inputs, *size)
    m, n = _tile(inputs, places)
    shape = (rows, inputs, *size, outputs, *weight.shape[-2:], *dy.shape[-2:])
    grid = (runs * triton.cdiv(inputs, m) * triton.cdiv(places, n),)
    _input_gradient[grid](dy, weight, dx, *shape, *_flat(geometry), m, n, num_warps=4)
    return dx


def weight_gradient(dy: Tensor, x: Tensor, kernel: Sequence[int], geometry: Geometry, chunk: int) -> Tensor:
    """dw [n, parts, O, C P Q + 1]: one part for every `chunk` of the batch's rows; the last column is the bias."""
    dy, x = dy.contiguous(), x.contiguous()
    runs, rows, outputs = dy.shape[:3]
    inputs, columns = x.shape[2], x.shape[2] * kernel[0] * kernel[1] + 1
    parts = -(-rows // chunk)
    dw = dy.new_empty(runs, parts, outputs, columns, dtype=torch.promote_types(dy.dtype, torch.float32))
    m, n, k = _side(outputs, 32), _side(columns, 32), 64
    shape = (rows, inputs, *x.shape[-2:], outputs, *kernel, *dy.shape[-2:])
    grid = (runs * parts * triton.cdiv(outputs, m) * triton.cdiv(columns, n),)
    warps = 1 if m * n <= 512 else 4
    split = (chunk, parts, input_precision())
    _weight_gradient[grid](dy, x, dw, *shape, *_flat(geometry), *split, m, n, k, num_warps=warps, num_stages=3)
    return dw


def _flat(geometry: Geometry) -> list[int]:
    return [side for each in geometry for side in each]

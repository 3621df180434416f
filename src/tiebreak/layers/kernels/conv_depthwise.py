"""Depthwise convolutions of many networks: each output channel reads one input channel, so that nothing is a product.

Plain multiply-adds on tiles of places times channels. With channels last a tile's channels lie together. Places and
taps as in `conv_products`. The weight gradient is split over the places into parts, which the caller sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.conv_products import Geometry, channels_last, parts_of
from tiebreak.layers.kernels.places import wide, within

# ruff: noqa: PLR0913, PLR0917

WIDE, TALL = 32, 64  # channels and places of a tile, at most; not measured yet


@triton.jit
def _gather(
    x, weight, bias, y,
    x_run: tl.constexpr, x_b: tl.constexpr, x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr,
    w_run: tl.constexpr, w_o: tl.constexpr, w_p: tl.constexpr, w_q: tl.constexpr,
    y_run: tl.constexpr, y_b: tl.constexpr, y_n: tl.constexpr, y_h: tl.constexpr, y_w: tl.constexpr,
    ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    HO: tl.constexpr, WO: tl.constexpr,
    MV: tl.constexpr, MH: tl.constexpr, OV: tl.constexpr, OH: tl.constexpr, TV: tl.constexpr, TH: tl.constexpr,
    DV: tl.constexpr, DH: tl.constexpr, MULTIPLE: tl.constexpr, BACK: tl.constexpr,
    BIASED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    places: tl.constexpr = HO * WO
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(ROWS * places, BM) * tiles_n
    tile, run = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    x += run * x_run
    weight += run * w_run
    m = wide(tile // tiles_n * BM + tl.arange(0, BM))
    n = tile % tiles_n * BN + tl.arange(0, BN)
    row, place = m // places, wide(m % places)
    i, j = place // WO * MV + OV, place % WO * MH + OH
    total = tl.zeros((BM, BN), tl.float32)
    if BIASED:
        total += tl.load(bias + run * N + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    for number in tl.static_range(MULTIPLE if BACK else 1):
        # Forward, output n reads input n // MULTIPLE; backward, input n collects from outputs n MULTIPLE + number.
        c = n * MULTIPLE + number if BACK else n // MULTIPLE
        o = c if BACK else n
        for tap in tl.static_range(P * Q):
            h, w = i + tap // Q * TV, j + tap % Q * TH
            inside = (m < ROWS * places) & within(h, w, H * DV, W * DH)
            if DV > 1:
                inside = inside & (h % DV == 0)
                h = h // DV
            if DH > 1:
                inside = inside & (w % DH == 0)
                w = w // DH
            value = tl.load(
                x + (row * x_b + h * x_h + w * x_w)[:, None] + (c * x_c)[None, :],
                mask=inside[:, None] & (n < N)[None, :],
                other=0.0,
            )
            taps = tl.load(weight + o * w_o + tap // Q * w_p + tap % Q * w_q, mask=n < N, other=0.0)
            total += value.to(tl.float32) * taps.to(tl.float32)[None, :]
    where = y + run * y_run + (row * y_b + place // WO * y_h + place % WO * y_w)[:, None] + (n * y_n)[None, :]
    tl.store(where, total, mask=(m < ROWS * places)[:, None] & (n < N)[None, :])


@triton.jit
def _tap(
    x, above, tap, at, i, j, here, real, c,
    x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    Q: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
):  # fmt: skip
    """What these places add to the sums of a tap."""
    down, right = tap // Q * DV, tap % Q * DH
    inside = here & within(i + down, j + right, H, W)
    where = at + (down * x_h + right * x_w)
    value = tl.load(x + where[:, None] + (c * x_c)[None, :], mask=inside[:, None] & real[None, :], other=0.0)
    return value.to(tl.float32) * above


@triton.jit
def _weight_gradient(
    dy, x, dw,
    y_run: tl.constexpr, y_b: tl.constexpr, y_n: tl.constexpr, y_h: tl.constexpr, y_w: tl.constexpr,
    x_run: tl.constexpr, x_b: tl.constexpr, x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr,
    ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    HO: tl.constexpr, WO: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
    MULTIPLE: tl.constexpr, CHUNK: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    places: tl.constexpr = HO * WO
    taps: tl.constexpr = P * Q
    sets: tl.constexpr = (taps + 2) // 3
    tiles = tl.cdiv(N, BN) * sets  # the taps of a tile of channels come one after the other: they read the same rows
    tile, batch = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    part, run = batch % PARTS, (batch // PARTS).to(tl.int64)
    tap, n = tile % sets * 3, tile // sets * BN + tl.arange(0, BN)
    # Past the last tap, it once more: the same numbers in the same place.
    second, third = tl.minimum(tap + 1, taps - 1), tl.minimum(tap + 2, taps - 1)
    dy += run * y_run
    x += run * x_run
    real, c = n < N, n // MULTIPLE
    one = tl.zeros((BM, BN), tl.float32)
    two = tl.zeros((BM, BN), tl.float32)
    three = tl.zeros((BM, BN), tl.float32)
    for start in range(part * CHUNK, tl.minimum(part * CHUNK + CHUNK, ROWS * places), BM):
        m = wide(start + tl.arange(0, BM))
        here = (m < ROWS * places) & (m < part * CHUNK + CHUNK)
        row, place = m // places, wide(m % places)
        i, j = place // WO, place % WO
        found = dy + (row * y_b + i * y_h + j * y_w)[:, None] + (n * y_n)[None, :]
        above = tl.load(found, mask=here[:, None] & real[None, :], other=0.0).to(tl.float32)
        i, j = i * SV - ZV, j * SH - ZH
        at = row * x_b + i * x_h + j * x_w
        one += _tap(x, above, tap, at, i, j, here, real, c, x_c, x_h, x_w, H, W, Q, DV, DH)
        two += _tap(x, above, second, at, i, j, here, real, c, x_c, x_h, x_w, H, W, Q, DV, DH)
        three += _tap(x, above, third, at, i, j, here, real, c, x_c, x_h, x_w, H, W, Q, DV, DH)
    out = dw + (run * PARTS + part) * (taps * N) + n
    tl.store(out + tap * N, tl.sum(one, axis=0), mask=real)
    tl.store(out + second * N, tl.sum(two, axis=0), mask=real)
    tl.store(out + third * N, tl.sum(three, axis=0), mask=real)


def _tile(places: int, channels: int) -> tuple[int, int]:
    across = min(WIDE, int(triton.next_power_of_2(channels)))
    return min(TALL * WIDE // across, max(16, int(triton.next_power_of_2(places)))), across


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, sizes: Sequence[int], geometry: Geometry) -> Tensor:
    """y [n, B, O, H', W'] of x [n, B, C, H, W] and weight [n, O, 1, P, Q]; O is a multiple of C."""
    stride, padding, dilation = geometry
    y = channels_last(x.shape[0], x.shape[1], weight.shape[1], sizes, x)
    steps = (*stride, *(-side for side in padding), *dilation, 1, 1)
    _launch(x, weight, bias, y, (*steps, weight.shape[1] // x.shape[2], False))
    return y


def input_gradient(dy: Tensor, weight: Tensor, size: Sequence[int], geometry: Geometry, channels: int) -> Tensor:
    """dx [n, B, C, H, W] of dy [n, B, O, H', W']."""
    stride, padding, dilation = geometry
    dx = channels_last(dy.shape[0], dy.shape[1], channels, size, dy)
    steps = (1, 1, *padding, *(-side for side in dilation), *stride)
    _launch(dy, weight, None, dx, (*steps, weight.shape[1] // channels, True))
    return dx


def _launch(x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, steps: Sequence[int]) -> None:
    runs, rows, channels = y.shape[:3]
    places = rows * y.shape[-2] * y.shape[-1]
    m, n = _tile(places, channels)
    run, out, _, down, right = weight.stride()
    shape = (rows, *x.shape[-2:], channels, *weight.shape[-2:], *y.shape[-2:])
    _gather[(runs * triton.cdiv(places, m) * triton.cdiv(channels, n),)](
        x, weight, y if bias is None else bias.contiguous(), y, *x.stride(), run, out, down, right, *y.stride(),
        *shape, *steps, bias is not None, m, n, num_warps=4,
    )  # fmt: skip


def weight_gradient(dy: Tensor, x: Tensor, kernel: Sequence[int], geometry: Geometry) -> Tensor:
    """dw [n, parts, O, 1, P, Q] in float32, with the taps first in memory: the parts are still to be summed."""
    runs, rows, channels = dy.shape[:3]
    places = rows * dy.shape[-2] * dy.shape[-1]
    parts = parts_of(places)
    dw = torch.empty(runs, parts, *kernel, channels, 1, dtype=torch.float32, device=dy.device)
    m, n = _tile(places, channels)
    shape = (rows, *x.shape[-2:], channels, *kernel, *dy.shape[-2:])
    flat = [side for each in geometry for side in each]
    sets = triton.cdiv(kernel[0] * kernel[1], 3)
    _weight_gradient[(runs * parts * triton.cdiv(channels, n) * sets,)](
        dy, x, dw, *dy.stride(), *x.stride(), *shape, *flat, channels // x.shape[2], -(-places // parts), parts, m, n,
        num_warps=4,
    )  # fmt: skip
    return dw.permute(0, 1, 4, 5, 2, 3)

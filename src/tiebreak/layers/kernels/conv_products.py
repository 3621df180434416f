"""Convolutions of many networks as implicit matrix products on tensor cores: the ops of `product_conv` on a GPU.

    forward           y[m, o]  = bias[o] + sum over k = (tap, c) of  x at (m, tap, c)   weight[o, c, tap]
    input gradient    dx[m, c] =           sum over k = (tap, o) of  dy at (m, tap, o)  weight[o, c, tap]
    weight gradient   dw[o, k] =           sum over m            of  dy[m, o]           x at (m, k)

m runs over the places of all images of a run's batch. The first two are one kernel: the place that a tap reads is
(i MUL + OFF + p STEP) / DIV, where that is whole and inside. Nothing is unfolded in memory. With channels last, what a
block reads lies together. The third is split over the places into parts, which the caller sums: no atomics, so that a
run repeats bit for bit. From 16 channels on the kernels are those of `conv_taps`. Groups are in the grid; depthwise
layers have kernels of plain multiply-adds (`conv_depthwise`). Blocks follow from one run's shapes: a run's numbers do
not depend on how many others there are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiebreak.layers.kernels.conv_taps import gather_taps, weight_taps
from tiebreak.layers.kernels.places import wide, within
from tiebreak.layers.kernels.product import input_precision

# Triton compiles a kernel for its parameters: it takes no structures, and every size must be a constant of its own.
# ruff: noqa: PLR0913, PLR0917

Geometry = tuple[Sequence[int], Sequence[int], Sequence[int]]  # stride, padding, dilation, each (vertical, horizontal)


@dataclass(frozen=True)
class Blocks:
    """Sides of a tile of the product [m, k] [k, n], warps of a program, and loads in flight."""

    m: int
    n: int
    k: int
    warps: int = 2
    stages: int = 3

    def __post_init__(self) -> None:
        """Refuse loads in flight for tiles that four warps would multiply together.

        On Hopper those products read shared memory by themselves (wgmma). Up to at least Triton 3.6, nothing orders
        such a read after the copies in flight (no fence.proxy.async), and sums come out wrong now and then.
        """
        if self.m >= 64 and self.warps % 4 == 0 and self.stages > 1:
            raise ValueError(f"{self}: take fewer than 64 rows, fewer than 4 warps, or one stage")


WIDENED = os.environ.get("TRITON_INTERPRET") == "1"  # the interpreter has no product of bfloat16: the same in float32
PLACES = 2048  # of one part of a weight gradient's sum
DEEP = 16  # channels from which on a step of the sum has one tap


def has_taps(channels: int, geometry: Geometry) -> bool:
    """Whether the kernels of `conv_taps` compute it: they do not for a stride and a dilation in the same direction."""
    stride, _, dilation = geometry
    return channels >= DEEP and all(step == 1 or gap == 1 for step, gap in zip(stride, dilation, strict=True))


def blocks_of(kind: str, rows: int, columns: int, inner: int, dtype: torch.dtype) -> Blocks:
    """The tile for a product of this size: for 16 channels measured on an H200, else the like that fits in registers.

    `kind` is "taps", where `inner` is the size of one step of the sum, "gather" or "weight".
    """
    deep = 64 if dtype == torch.bfloat16 else 32 if input_precision() == "tf32" else 16
    n = side(columns, 32 if kind == "weight" else 64)
    if kind == "weight":  # few rows and columns, a long sum
        m = side(rows, 32)
        return Blocks(m, n, deep, 1 if m * n == 256 else 2)
    return Blocks(side(rows, 128 if kind == "taps" and n == 16 else 64), n, side(inner, deep))


def side(size: int, most: int) -> int:
    """A power of two that covers the size, from 16 to `most`."""
    return min(most, max(16, int(triton.next_power_of_2(size))))


@triton.jit
def _gather(
    x, weight, bias, y,
    x_run: tl.constexpr, x_b: tl.constexpr, x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr,
    w_run: tl.constexpr, w_group: tl.constexpr, w_n: tl.constexpr, w_c: tl.constexpr,
    w_p: tl.constexpr, w_q: tl.constexpr,
    y_run: tl.constexpr, y_b: tl.constexpr, y_n: tl.constexpr, y_h: tl.constexpr, y_w: tl.constexpr,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, GROUPS: tl.constexpr,
    MV: tl.constexpr, MH: tl.constexpr, OV: tl.constexpr, OH: tl.constexpr, TV: tl.constexpr, TH: tl.constexpr,
    DV: tl.constexpr, DH: tl.constexpr,
    BIASED: tl.constexpr, PRECISION: tl.constexpr, WIDEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    places: tl.constexpr = HO * WO
    inner: tl.constexpr = P * Q * C
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(ROWS * places, BM) * tiles_n
    tile, batch = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    group, run = batch % GROUPS, (batch // GROUPS).to(tl.int64)
    x += run * x_run + group * C * x_c
    weight += run * w_run + group * w_group
    m = wide(tile // tiles_n * BM + tl.arange(0, BM))
    n = tile % tiles_n * BN + tl.arange(0, BN)
    row, place = m // places, wide(m % places)
    i, j = place // WO * MV + OV, place % WO * MH + OH
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, inner, BK):
        k = wide(start + tl.arange(0, BK))
        tap, c = k // C, k % C
        p, q = tap // Q, tap % Q
        h, w = i[:, None] + (p * TV)[None, :], j[:, None] + (q * TH)[None, :]
        inside = (m < ROWS * places)[:, None] & (k < inner)[None, :] & within(h, w, H * DV, W * DH)
        if DV > 1:
            inside = inside & (h % DV == 0)
            h = h // DV
        if DH > 1:
            inside = inside & (w % DH == 0)
            w = w // DH
        left = tl.load(x + (row * x_b)[:, None] + (c * x_c)[None, :] + h * x_h + w * x_w, mask=inside, other=0.0)
        right = tl.load(
            weight + (c * w_c + p * w_p + q * w_q)[:, None] + (n * w_n)[None, :],
            mask=(k < inner)[:, None] & (n < N)[None, :],
            other=0.0,
        )
        if WIDEN:
            left, right = left.to(tl.float32), right.to(tl.float32)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    if BIASED:
        total += tl.load(bias + (run * GROUPS + group) * N + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    where = y + run * y_run + (row * y_b + place // WO * y_h + place % WO * y_w)[:, None]
    where += ((group * N + n) * y_n)[None, :]
    tl.store(where, total, mask=(m < ROWS * places)[:, None] & (n < N)[None, :])


@triton.jit
def _weight_gradient(
    dy, x, dw,
    y_run: tl.constexpr, y_b: tl.constexpr, y_n: tl.constexpr, y_h: tl.constexpr, y_w: tl.constexpr,
    x_run: tl.constexpr, x_b: tl.constexpr, x_c: tl.constexpr, x_h: tl.constexpr, x_w: tl.constexpr,
    ROWS: tl.constexpr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, GROUPS: tl.constexpr,
    SV: tl.constexpr, SH: tl.constexpr, ZV: tl.constexpr, ZH: tl.constexpr, DV: tl.constexpr, DH: tl.constexpr,
    CHUNK: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr, WIDEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    places: tl.constexpr = HO * WO
    columns: tl.constexpr = P * Q * C
    tiles_n = tl.cdiv(columns, BN)
    tiles = tl.cdiv(N, BM) * tiles_n
    tile, batch = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    part, batch = batch % PARTS, batch // PARTS
    group, run = batch % GROUPS, (batch // GROUPS).to(tl.int64)
    dy += run * y_run + group * N * y_n
    x += run * x_run + group * C * x_c
    o = tile // tiles_n * BM + tl.arange(0, BM)
    k = wide(tile % tiles_n * BN + tl.arange(0, BN))
    tap, c = k // C, k % C
    h, w = tap // Q * DV - ZV, tap % Q * DH - ZH
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(part * CHUNK, tl.minimum(part * CHUNK + CHUNK, ROWS * places), BK):
        m = wide(start + tl.arange(0, BK))
        here = (m < ROWS * places) & (m < part * CHUNK + CHUNK)
        row, place = m // places, wide(m % places)
        i, j = place // WO, place % WO
        down, right = (i * SV)[:, None] + h[None, :], (j * SH)[:, None] + w[None, :]
        inside = here[:, None] & (k < columns)[None, :] & within(down, right, H, W)
        value = tl.load(
            x + (row * x_b)[:, None] + (c * x_c)[None, :] + down * x_h + right * x_w, mask=inside, other=0.0
        )
        above = tl.load(
            dy + (row * y_b + i * y_h + j * y_w)[None, :] + (o * y_n)[:, None],
            mask=(o < N)[:, None] & here[None, :],
            other=0.0,
        )
        if WIDEN:
            above, value = above.to(tl.float32), value.to(tl.float32)
        total = tl.dot(above, value, total, input_precision=PRECISION)
    # dw [run, part, tap, output, input]
    where = dw + (run * PARTS + part) * (GROUPS * N * columns) + ((group * N + o) * C)[:, None]
    where += (tap * (GROUPS * N * C) + c)[None, :]
    tl.store(where, total, mask=(o < N)[:, None] & (k < columns)[None, :])


def channels_last(runs: int, rows: int, channels: int, sizes: Sequence[int], like: Tensor) -> Tensor:
    """An empty [n, B, C, H, W] whose channels lie together."""
    return like.new_empty(runs, rows, *sizes, channels).permute(0, 1, 4, 2, 3)


def forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    sizes: Sequence[int],
    geometry: Geometry,
    groups: int,
    blocks: Blocks | None = None,
) -> Tensor:
    """y [n, B, O, H', W'] of x [n, B, C, H, W] and weight [n, O, C / groups, P, Q]."""
    stride, padding, dilation = geometry
    runs, rows = x.shape[:2]
    columns, inputs = weight.shape[1] // groups, weight.shape[2]
    y = channels_last(runs, rows, weight.shape[1], sizes, x)
    run, out, inner, down, right = weight.stride()
    steps = (*stride, *(-side for side in padding), *dilation, 1, 1)
    tensors, strides = (x, weight, bias, y), (run, columns * out, out, inner, down, right)
    if has_taps(inputs, geometry):
        steps = (*steps, 0, 0)
    _launch(tensors, strides, (inputs, columns), groups, steps, blocks)
    return y


def input_gradient(
    dy: Tensor,
    weight: Tensor,
    size: Sequence[int],
    geometry: Geometry,
    groups: int,
    blocks: Blocks | None = None,
) -> Tensor:
    """dx [n, B, C, H, W] of dy [n, B, O, H', W']."""
    stride, padding, dilation = geometry
    runs, rows = dy.shape[:2]
    outputs, columns = weight.shape[1] // groups, weight.shape[2]
    dx = channels_last(runs, rows, columns * groups, size, dy)
    run, out, inner, down, right = weight.stride()
    tensors, strides = (dy, weight, None, dx), (run, outputs * out, inner, out, down, right)
    if has_taps(outputs, geometry):  # places of the same remainder have taps in common
        steps = (1, 1, 0, 0, *(-side for side in dilation), *stride, *padding)
    else:
        steps = (1, 1, *padding, *(-side for side in dilation), *stride)
    _launch(tensors, strides, (outputs, columns), groups, steps, blocks)
    return dx


def _launch(
    tensors: tuple[Tensor, Tensor, Tensor | None, Tensor],
    strides: Sequence[int],
    channels: tuple[int, int],
    groups: int,
    steps: Sequence[int],
    blocks: Blocks | None,
) -> None:
    """A gathering kernel, from the channels of one group to those of another; the strides are those of the weight.

    Ten steps are those of `gather_taps`, eight those of `_gather`.
    """
    x, weight, bias, y = tensors
    runs, rows = x.shape[:2]
    inputs, columns = channels
    kernel, sizes = weight.shape[-2:], y.shape[-2:]
    tapped = len(steps) == 10
    apart = (steps[6], steps[7]) if tapped else (1, 1)
    places = rows * triton.cdiv(sizes[0], apart[0]) * triton.cdiv(sizes[1], apart[1])
    inner = inputs if tapped else inputs * kernel[0] * kernel[1]
    tile = blocks or blocks_of("taps" if tapped else "gather", places, columns, inner, x.dtype)
    bias = bias.contiguous() if bias is not None else None
    shape = (rows, inputs, *x.shape[-2:], columns, *kernel, *sizes, groups)
    grid = (runs * groups * apart[0] * apart[1] * triton.cdiv(places, tile.m) * triton.cdiv(columns, tile.n),)
    (gather_taps if tapped else _gather)[grid](
        x, weight, y if bias is None else bias, y, *x.stride(), *strides, *y.stride(), *shape, *steps,
        bias is not None, input_precision(), WIDENED, tile.m, tile.n, tile.k,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip


def parts_of(places: int) -> int:
    """Into how many parts the sum of a weight gradient over so many places is split."""
    return max(1, -(-places // PLACES))


def weight_gradient(
    dy: Tensor, x: Tensor, kernel: Sequence[int], geometry: Geometry, groups: int, blocks: Blocks | None = None
) -> Tensor:
    """dw [n, parts, O, C / groups, P, Q] in float32, taps first in memory: the parts are still to be summed."""
    runs, rows, outputs = dy.shape[:3]
    inputs, rows_of_group = x.shape[2] // groups, outputs // groups
    places, taps = rows * dy.shape[-2] * dy.shape[-1], kernel[0] * kernel[1]
    parts, tapped = parts_of(places), has_taps(inputs, geometry)
    columns = inputs if tapped else inputs * taps
    dw = torch.empty(runs, parts, *kernel, outputs, inputs, dtype=torch.float32, device=dy.device)
    tile = blocks or blocks_of("weight", rows_of_group, columns, places, dy.dtype)
    chunk = -(-places // parts)
    shape = (rows, inputs, *x.shape[-2:], rows_of_group, *kernel, *dy.shape[-2:], groups)
    sets = 1 if not tapped or taps == 1 else triton.cdiv(taps, 3)
    grid = (runs * groups * parts * sets * triton.cdiv(rows_of_group, tile.m) * triton.cdiv(columns, tile.n),)
    flat = [side for each in geometry for side in each]
    (weight_taps if tapped else _weight_gradient)[grid](
        dy, x, dw, *dy.stride(), *x.stride(), *shape, *flat, chunk, parts, input_precision(), WIDENED,
        tile.m, tile.n, tile.k, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return dw.permute(0, 1, 4, 5, 2, 3)

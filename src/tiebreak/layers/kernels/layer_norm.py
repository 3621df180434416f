"""Layer normalisation of many runs on a GPU, and its gradient: each reads and writes every number once.

    y = (x - m) r w + b,   m and r mean and 1 / standard deviation of a row
    dx = r (g - mean(g) - z mean(g z)),   g = dy w,  z = (x - m) r;   dw = sum dy z,   db = sum dy over the rows

x, y [n, R, W] float32, w and b [n, W], m and r [n, R]. A program of the gradient goes through PART rows and leaves its
share of dw and db; the shares are added in a fixed order. How rows are cut depends on R and W only.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# ruff: noqa: PLR0913, PLR0917  (Triton takes no structures)

TILE = 2048  # numbers of one tile
PART = 256  # rows of a program of the gradient


@triton.jit
def _normalise(x, w, b, y, means, scales, eps, R, W: tl.constexpr, BR: tl.constexpr, BW: tl.constexpr):
    tiles = tl.cdiv(R, BR)
    run, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    row, column = tile * BR + tl.arange(0, BR), tl.arange(0, BW)
    inside = (row < R)[:, None] & (column < W)[None, :]
    place = run * R * W + row[:, None].to(tl.int64) * W + column[None, :]
    values = tl.load(x + place, mask=inside, other=0.0)
    mean = tl.sum(values, axis=1) / W
    centred = tl.where((column < W)[None, :], values - mean[:, None], 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=1) / W + eps)
    weight = tl.load(w + run * W + column, mask=column < W, other=0.0)
    bias = tl.load(b + run * W + column, mask=column < W, other=0.0)
    tl.store(y + place, centred * scale[:, None] * weight[None, :] + bias[None, :], mask=inside)
    tl.store(means + run * R + row, mean, mask=row < R)
    tl.store(scales + run * R + row, scale, mask=row < R)


@triton.jit
def _gradients(
    x, w, means, scales, dy, dx, dw, db, R,
    W: tl.constexpr, BR: tl.constexpr, BW: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    parts = tl.cdiv(R, ROWS)
    run, part = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    column = tl.arange(0, BW)
    weight = tl.load(w + run * W + column, mask=column < W, other=0.0)
    weights, biases = tl.zeros((BR, BW), tl.float32), tl.zeros((BR, BW), tl.float32)
    for start in range(0, ROWS, BR):
        row = part * ROWS + start + tl.arange(0, BR)
        inside = (row < R)[:, None] & (column < W)[None, :]
        place = run * R * W + row[:, None].to(tl.int64) * W + column[None, :]
        mean = tl.load(means + run * R + row, mask=row < R, other=0.0)
        scale = tl.load(scales + run * R + row, mask=row < R, other=0.0)
        above = tl.load(dy + place, mask=inside, other=0.0)
        values = tl.load(x + place, mask=inside, other=0.0)
        z = tl.where(inside, (values - mean[:, None]) * scale[:, None], 0.0)
        weights += above * z
        biases += above
        g = above * weight[None, :]
        along = tl.sum(g * z, axis=1) / W
        shift = tl.sum(g, axis=1) / W
        tl.store(dx + place, (g - shift[:, None] - z * along[:, None]) * scale[:, None], mask=inside)
    share = (run * parts + part) * W + column
    tl.store(dw + share, tl.sum(weights, axis=0), mask=column < W)
    tl.store(db + share, tl.sum(biases, axis=0), mask=column < W)


def _tile(width: int) -> tuple[int, int]:
    """Rows and columns of a tile."""
    columns = int(triton.next_power_of_2(width))
    return max(1, TILE // columns), columns


def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """y, and mean and scale of every row; all tensors contiguous."""
    runs, rows, width = x.shape
    y, means, scales = torch.empty_like(x), x.new_empty(runs, rows), x.new_empty(runs, rows)
    tall, wide = _tile(width)
    _normalise[(runs * triton.cdiv(rows, tall),)](x, weight, bias, y, means, scales, eps, rows, width, tall, wide)
    return y, means, scales


def backward(x: Tensor, weight: Tensor, means: Tensor, scales: Tensor, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """dx, dw and db; all tensors contiguous."""
    runs, rows, width = x.shape
    tall, wide = _tile(width)
    parts = int(triton.cdiv(rows, PART))
    dx, dw, db = torch.empty_like(x), x.new_empty(runs, parts, width), x.new_empty(runs, parts, width)
    _gradients[(runs * parts,)](x, weight, means, scales, dy, dx, dw, db, rows, width, tall, wide, PART)
    return dx, dw.sum(dim=1), db.sum(dim=1)

"""The convolutions of cnn-pool and cnn-strided in JAX, for one run: 9 shifted slices + one product.

Shapes: C channels, O channels out, B batch, H x W image. Layouts of the convolutions:
    rows     images are [C, B, H, W]; [O, 9C] times [9C, B H W]
    columns  images are [B, H, W, C]; [B H W, 9C] times [9C, O]
    phases   as rows, but the first convolution gives the four members of each pooling cell as four images, so that
             pooling and its gradient touch whole arrays
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Layout = Literal["rows", "columns", "phases"]
Array = Any  # a jax.Array

SHIFTS = tuple(itertools.product(range(3), range(3)))  # of a 3x3 filter
CELL = tuple(itertools.product(range(2), range(2)))  # of a 2x2 pooling


def window(x: Array, axis: int, shift: tuple[int, int], size: int, stride: int) -> Array:
    """A square of `size` elements a side of the image whose H and W are axes `axis` and `axis` + 1."""
    for number, start in enumerate(shift):
        x = lax.slice_in_dim(x, start, start + (size - 1) * stride + 1, stride, axis + number)
    return x


def first_max(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The maximum; among equals the first gets the gradient, as in PyTorch."""
    top, bottom = jnp.where(b > a, b, a), jnp.where(d > c, d, c)
    return jnp.where(bottom > top, bottom, top)


def pooled(x: Array, axis: int) -> Array:
    """The maximum of each 2x2 cell."""
    return first_max(*(window(x, axis, at, x.shape[axis] // 2, 2) for at in CELL))


def conv_rows(x: Array, weight: Array, bias: Array, stride: int) -> Array:
    """[C, B, H, W] -> [O, B, H', W']."""
    size = (x.shape[2] - 3) // stride + 1
    return _rows_product(jnp.stack([window(x, 2, at, size, stride) for at in SHIFTS], 1), weight, bias)


def conv_phases(x: Array, weight: Array, bias: Array) -> Array:
    """[C, B, H, W] -> [O, 4, B, H'/2, W'/2]: the members of the cells of a 2x2 pooling apart."""
    size = (x.shape[2] - 2) // 2
    cells = [jnp.stack([window(x, 2, (i + p, j + q), size, 2) for p, q in CELL], 1) for i, j in SHIFTS]
    return _rows_product(jnp.stack(cells, 1), weight, bias)


def _rows_product(patches: Array, weight: Array, bias: Array) -> Array:
    rest = patches.shape[2:]
    out = weight.reshape(len(weight), -1) @ patches.reshape(-1, int(np.prod(rest)))
    return (out + bias[:, None]).reshape(-1, *rest)


def conv_columns(x: Array, weight: Array, bias: Array, stride: int) -> Array:
    """[B, H, W, C] -> [B, H', W', O]."""
    size = (x.shape[1] - 3) // stride + 1
    patches = jnp.stack([window(x, 1, at, size, stride) for at in SHIFTS], -1)
    out = patches.reshape(-1, x.shape[3] * len(SHIFTS)) @ weight.reshape(len(weight), -1).T
    return (out + bias).reshape(*patches.shape[:3], -1)


def features(params: dict[str, Array], images: Array, layout: Layout, pool: bool) -> Array:
    """Images [B, H, W] -> [B, 576], in PyTorch's order of features."""
    first, second = ((params[f"{name}.weight"], params[f"{name}.bias"]) for name in ("conv1", "conv2"))
    stride = 1 if pool else 2
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1)))
    if layout == "columns":
        x = jax.nn.relu(conv_columns(padded[..., None], *first, stride))
        x = jax.nn.relu(conv_columns(pooled(x, 1) if pool else x, *second, stride))
        return (pooled(x, 1) if pool else x).transpose(0, 3, 1, 2).reshape(len(images), -1)
    if layout == "phases" and pool:
        x = jax.nn.relu(conv_phases(padded[None], *first))
        x = first_max(*(x[:, member] for member in range(len(CELL))))
    else:
        x = jax.nn.relu(conv_rows(padded[None], *first, stride))
        x = pooled(x, 2) if pool else x
    x = jax.nn.relu(conv_rows(x, *second, stride))
    return (pooled(x, 2) if pool else x).transpose(1, 0, 2, 3).reshape(len(images), -1)

"""The matrix product of many small networks on a GPU.

    c[r] = a[r] b[r]   or, for plain SGD,   c[r] = c[r] - rate[r] a[r] b[r]   in place

a [n, M, K], b [n, K, N], any strides. The libraries choose poor kernels for the thin shapes of small networks (8 rows
times 576 x 320 weights: 54 microseconds for 100 runs where memory allows 18, and this one takes 24). Blocks depend on
M, N and K only: a run's numbers do not depend on how many others there are. Strides are known when the kernel is
compiled, since four numbers at once can be read only where the compiler sees that rows begin at multiples of four; at
widths such as 100 or 200 that makes the kernel three to six times as fast. A gradient that is such a product is never
stored: the second form subtracts it from the parameter. Products are computed as three TF32 products (the two
halves of each number, the smallest of the four terms left out): the precision of float32 at the tensor cores' speed.
Where TF32 is allowed (--precision tf32), one product.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Triton compiles a kernel for its parameters: it takes no structures, and every stride must be a constant of its own.
# ruff: noqa: PLR0913, PLR0917

TALL, LARGE = 512, 1 << 27  # rows, and multiplications of a run, from which on blocks of 128 rows are faster


@triton.jit
def _product(
    a, b, c, rate,
    a_run: tl.constexpr, a_m: tl.constexpr, a_k: tl.constexpr,
    b_run: tl.constexpr, b_k: tl.constexpr, b_n: tl.constexpr,
    c_run: tl.constexpr, c_m: tl.constexpr, c_n: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    DESCEND: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    tile, run = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    m = tile // tiles_n * BM + tl.arange(0, BM)
    n = tile % tiles_n * BN + tl.arange(0, BN)
    a += run * a_run
    b += run * b_run
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * a_m + k[None, :] * a_k, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        right = tl.load(b + k[:, None] * b_k + n[None, :] * b_n, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    where = c + run * c_run + m[:, None] * c_m + n[None, :] * c_n
    inside = (m < M)[:, None] & (n < N)[None, :]
    if DESCEND:
        total = tl.load(where, mask=inside, other=0.0) - tl.load(rate + run) * total
    tl.store(where, total, mask=inside)


def blocks_of(rows: int, columns: int, inner: int, *, descends: bool) -> tuple[int, int, int, int, int]:
    """Sides of a block in M, N and K, warps and stages: by shape alone; measured on an H200 for small networks."""
    thin, large = inner <= 16 or descends, rows >= TALL and rows * columns * inner >= LARGE
    m, n = _side(rows, 32 if thin else 128 if large else 64), _side(columns, 64)
    warps = 1 if m * n <= 512 else 2 if inner <= 16 else 4
    return m, n, _side(inner, 32), warps, 3 if large or descends else 4


def _launch(a: Tensor, b: Tensor, c: Tensor, rate: Tensor | None) -> None:
    runs, rows, inner = a.shape
    columns = b.shape[2]
    m, n, k, warps, stages = blocks_of(rows, columns, inner, descends=rate is not None)
    if m >= 64 and warps == 4 and (a.dtype != torch.float32 or input_precision() == "tf32"):
        # Four warps multiply 64 rows together on Hopper (wgmma), and read shared memory by themselves. Up to at least
        # Triton 3.6, nothing orders that after the copies that fill it, except among the three products of float32.
        m, warps = 64, 2
    _product[(runs * triton.cdiv(rows, m) * triton.cdiv(columns, n),)](
        a, b, c, c if rate is None else rate, *a.stride(), *b.stride(), *c.stride(), rows, columns, inner,
        rate is not None, input_precision(), m, n, k, num_warps=warps, num_stages=stages,
    )  # fmt: skip


def input_precision() -> str:
    """How a product of float32 numbers is computed: one TF32 product where TF32 is allowed, else three."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"


def _side(size: int, most: int) -> int:
    return min(most, max(16, int(triton.next_power_of_2(size))))


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b of every run."""
    c = a.new_empty(a.shape[0], a.shape[1], b.shape[2])
    _launch(a, b, c, None)
    return c


def descend(param: Tensor, a: Tensor, b: Tensor, rate: Tensor) -> None:
    """param - rate a b, in place: param [n, M, N], rate n numbers."""
    _launch(a, b, param, rate)

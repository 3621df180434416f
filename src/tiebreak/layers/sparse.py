"""Products of a sparse matrix and a dense one, written as sums of rows: they work in a trace and over many runs.

    y_i = sum_{e : row(e) = i} w_e x_{column(e)}          y [R, F], x [C, F], e the entries, sorted by row

No sparse tensor is involved, only the entries: columns and weights [E], and where each row's entries start [R + 1]. Of
many runs the places of entries are shared; the weights may differ (dropout on the entries) or not. Both directions are
such sums, the gradient for x with the entries of the transposed matrix, sorted by its rows. There is none for w.
Cost: F multiply-adds for each entry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Entries(NamedTuple):
    """The entries of a sparse matrix, sorted by row; weights None are all 1. A row without entries is 0."""

    starts: Tensor  # [rows + 1]
    columns: Tensor  # [E]
    weights: Tensor | None  # [E]


def starts_of(rows: Tensor, count: int) -> Tensor:
    """Where the entries of each of `count` rows start [count + 1], for sorted `rows` [E]."""
    return torch.searchsorted(rows, torch.arange(count + 1, device=rows.device))


def multiply(matrix: Entries, transposed: Entries, x: Tensor) -> Tensor:
    """The matrix [R, C] times x [C, F]; `transposed` is the same matrix the other way round."""
    return _Sums.apply(x, *matrix, *transposed)  # type: ignore[no-any-return, no-untyped-call]


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(
        x: Tensor,
        starts: Tensor,
        columns: Tensor,
        weights: Tensor | None,
        back_starts: Tensor,
        back_columns: Tensor,
        back_weights: Tensor | None,
    ) -> Tensor:
        return F.embedding_bag(columns, x, starts, mode="sum", per_sample_weights=weights, include_last_offset=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        starts, columns, weights, *back = ctx.saved_tensors
        return (_Sums.apply(above, *back, starts, columns, weights), *[None] * 6)  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, *entries: Any) -> tuple[Tensor, int]:
        """The runs beside the columns of x; with weights of their own they are blocks on the diagonal instead."""
        runs, own = info.batch_size, in_dims[3] is not None
        x = x.movedim(in_dims[0], 0) if in_dims[0] is not None else x.expand(runs, *x.shape)
        if not own:
            wide = x.transpose(0, 1)
            found: Tensor = _Sums.apply(wide.flatten(1), *entries)  # type: ignore[no-untyped-call]
            # Each run in one piece again: else the order of later sums over nodes depends on how many runs there are.
            return found.view(len(found), *wide.shape[1:]).transpose(0, 1).contiguous(), 0
        rows, columns = len(entries[0]) - 1, x.shape[1]
        forward = _blocks(runs, columns, Entries(*entries[:3]), in_dims[3])
        back = _blocks(runs, rows, Entries(*entries[3:]), in_dims[6])
        found = _Sums.apply(x.flatten(0, 1), *forward, *back)  # type: ignore[no-untyped-call]
        return found.view(runs, rows, -1), 0


def _blocks(runs: int, width: int, shared: Entries, axis: int | None) -> Entries:
    """The entries of `runs` matrices of `width` columns along a diagonal; the runs are along `axis` of the weights."""
    assert shared.weights is not None
    assert axis is not None
    each = torch.arange(runs, device=shared.columns.device)[:, None]
    ends = (shared.starts[1:] + each * len(shared.columns)).flatten()
    return Entries(
        starts=torch.cat([shared.starts[:1], ends]),
        columns=(shared.columns + each * width).flatten(),
        weights=shared.weights.movedim(axis, 0).flatten(),
    )

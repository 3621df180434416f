"""Packed sequences under vmap: padded rows and their lengths in the place of torch's packed data.

Torch packs the real elements of a batch into one tensor, whose shape depends on the lengths. Runs that are computed
together have other lengths each, so there that shape does not exist. While `packing_as_padding` is active,
`pack_padded_sequence` keeps the rows padded, `pad_packed_sequence` reads them, and the recurrent layers of
`swapped_recurrent` go through them by their lengths: the same numbers. Whatever else is done with such a sequence is
refused, and so is `pad_packed_sequence` without `total_length`, whose result has as many steps as the longest row.

Torch also checks the lengths, and refuses by value. Here a wrong one makes the row NaN, so that the run fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tiebreak.errors import TiebreakError

_pack, _pad = torch._C._VariableFunctions._pack_padded_sequence, torch._C._VariableFunctions._pad_packed_sequence


@dataclass(frozen=True)
class PaddedRows:
    """What is `data` and `batch_sizes` of a packed sequence: values [T, B, F] of rows, of which `lengths` [B] are real.

    Torch takes it for a kind of tensor, so that what it does with it comes to `__torch_function__`.
    """

    values: Tensor
    lengths: Tensor
    device = torch.device("cpu")  # of `batch_sizes`; torch insists on it

    def size(self, axis: int) -> int:
        """The steps of the longest row: not known. 0 lets torch's check of `total_length` pass."""
        return 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse everything but `pad_packed_sequence`."""
        if func is _pad:
            return padded(args[0], *args[2:])
        raise TiebreakError("it computes with the data of a packed sequence, whose shape depends on the lengths")


class PackingAsPadding(TorchFunctionMode):
    """Packs without packing. Lengths stay on the GPU: nothing reads them on the CPU.

    Torch sorts the rows by their lengths. It does so with operations that under vmap go run by run, the gradient's too;
    the same by `gather` and `scatter` does not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._orders: list[Tensor] = []  # what sorts the rows of a batch, or puts them back

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _pack:
            rows = rows_of(*args)
            return rows, rows
        if func is torch.sort and args[0].ndim == 1 and not args[0].is_floating_point():
            found = func(*args, **(kwargs or {}))
            self._orders.append(found[1])
            return found
        if func is Tensor.index_select and self._known(args[2]):
            return reordered(*args)
        if func is Tensor.scatter_ and self._known(args[2]):
            self._orders.append(args[0].copy_(torch.scatter(*args)))
            return self._orders[-1]
        if func in (Tensor.cpu, Tensor.to) and not args[0].is_floating_point() and _to_cpu(func, args, kwargs or {}):
            return args[0]
        return func(*args, **(kwargs or {}))

    def _known(self, order: Any) -> bool:
        return any(each is order for each in self._orders)


def reordered(x: Tensor, axis: int, order: Tensor) -> Tensor:
    """`index_select` whose gradient has a rule for vmap."""
    shape = [1] * x.ndim
    shape[axis] = len(order)
    return x.gather(axis, order.view(shape).expand(*x.shape[:axis], len(order), *x.shape[axis + 1 :]))


def _to_cpu(func: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether whole numbers are only moved to the CPU, as lengths are: a captured graph cannot move them."""
    target = args[1] if len(args) == 2 else kwargs.get("device") if len(args) == 1 and len(kwargs) == 1 else None
    moved = isinstance(target, str | torch.device) and torch.device(target).type == "cpu"
    return func is Tensor.cpu or moved


def rows_of(x: Tensor, lengths: Tensor, batch_first: bool) -> PaddedRows:
    """The rows of x, in the order of their lengths as torch wants it: the longest first."""
    values = x.transpose(0, 1) if batch_first else x
    lengths = lengths.to(values.device)
    steps, rows = values.shape[:2]
    if lengths.shape != (rows,):
        raise TiebreakError(f"pack_padded_sequence got lengths of shape {tuple(lengths.shape)} for {rows} rows")
    wrong = (lengths < 1) | (lengths > steps)
    wrong = wrong | torch.cat([lengths[:1] < 0, lengths[1:] > lengths[:-1]])
    return PaddedRows(torch.where(wrong.unsqueeze(-1), torch.nan, values), torch.where(wrong, steps, lengths))


def padded(rows: PaddedRows, batch_first: bool, value: float, total: int) -> tuple[Tensor, Tensor]:
    """What `pad_packed_sequence` returns, with `total` steps, before it sorts the rows."""
    if not total:
        raise TiebreakError(
            "pad_packed_sequence gives as many steps as the longest row has, which differs from run to run; give it"
            " total_length=x.shape[1] (the steps of the padded input)"
        )
    values = rows.values[:total]
    if total > len(values):
        values = torch.cat([values, values.new_zeros(total - len(values), *values.shape[1:])])
    real = torch.arange(total, device=values.device)[:, None] < rows.lengths
    values = torch.where(real.unsqueeze(-1), values, value)
    # Torch refuses rows that are longer than the total.
    values = torch.where((rows.lengths > total).unsqueeze(-1), torch.nan, values)
    return values.transpose(0, 1) if batch_first else values, rows.lengths

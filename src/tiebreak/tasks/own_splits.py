"""The data of a user's own task: what its function `load` returns, checked, and split where it is not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiebreak.data.splits import SPLITS, counts_by_split, split_tenths
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream

Tensors = Mapping[str, Tensor]
KEPT = (torch.float32, torch.int64, torch.uint8, torch.bool)  # other numbers become float32 or int64


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnData:
    """Tensors [N, ...] by split and name, with the examples along the first axis."""

    name: str
    splits: Mapping[str, Tensors]
    checksum: str
    official: bool | None = None
    licence: str = ""
    citation: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        """How many examples each split has."""
        return {split: len(next(iter(tensors.values()))) for split, tensors in self.splits.items()}

    def description(self) -> list[str]:
        """What the data holds, in lines."""
        tensors = ", ".join(f"{name} {_kind(values)}" for name, values in self.splits["train"].items())
        return [f"{self.name}: {counts_by_split(self.sizes.values())}; {tensors}; sha256 {self.checksum}"]


def own_data(name: str, loaded: Any) -> OwnData:
    """The data from what `load` returned: a dict of tensors for each split, or one dict of tensors for all examples."""
    if not isinstance(loaded, Mapping) or not loaded:
        raise TiebreakError(f"should return a dict of train, val and test, or of tensors, not {type(loaded).__name__}")
    if any(isinstance(each, Mapping) for each in loaded.values()):
        if set(loaded) != set(SPLITS):
            raise TiebreakError(
                f"returned the splits {', '.join(map(str, loaded))}; should be train, val and test, or one dict of"
                " tensors, which is then split 80/10/10"
            )
        splits = {split: _tensors(split, loaded[split]) for split in SPLITS}
        _check_alike(splits)
    else:
        whole = _tensors("", loaded)
        count = len(next(iter(whole.values())))
        rows = split_tenths(range(count), stream(0, "split", "own"), "examples")
        splits = {split: {key: values[list(rows[split])] for key, values in whole.items()} for split in SPLITS}
    return OwnData(name=name, splits=splits, checksum=_checksum(splits))


def _tensors(split: str, given: Any) -> dict[str, Tensor]:
    """The tensors of a split, all with the same number of examples."""
    if not isinstance(given, Mapping) or not given:
        raise TiebreakError(f"{split}: should be a dict of tensors, not {type(given).__name__}")
    found = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise TiebreakError(f"{_place(split, name)}: the name of a tensor should be a text")
        found[name] = _tensor(_place(split, name), value)
    counts = {name: len(values) for name, values in found.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise TiebreakError(f"{split or 'the tensors'}: different numbers of examples: {told}")
    if not next(iter(counts.values())):
        raise TiebreakError(f"{split or 'the tensors'}: no examples")
    return found


def _tensor(where: str, value: Any) -> Tensor:
    """A tensor or an array in a type that is trained on; NaN and infinities are refused."""
    if isinstance(value, np.ndarray) and (value.dtype.kind in "fiub" and value.dtype.itemsize <= 8):
        value = torch.from_numpy(np.ascontiguousarray(value).astype(value.dtype.newbyteorder("="), copy=False))
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_complex():
        raise TiebreakError(f"{where}: should be a tensor or a NumPy array of real numbers, not {_told(value)}")
    if not value.ndim:
        raise TiebreakError(f"{where}: a single number; the first axis should be that of the examples")
    value = value.detach().cpu()
    if value.dtype not in KEPT:
        value = value.float() if value.is_floating_point() else value.long()
    if value.is_floating_point() and not bool(value.isfinite().all()):
        row = int((~value.isfinite()).reshape(len(value), -1).any(1).nonzero()[0, 0])
        raise TiebreakError(f"{where}: NaN or infinite in example {row}; leave such examples out")
    found: Tensor = value.contiguous()
    return found


def _told(value: Any) -> str:
    kind = getattr(value, "dtype", None)
    return type(value).__name__ if kind is None else f"{type(value).__name__} of {kind}"


def _place(split: str, name: Any) -> str:
    return f"{split}[{name!r}]" if split else repr(name)


def _check_alike(splits: Mapping[str, Tensors]) -> None:
    """The splits have the same tensors, with examples of the same size and type."""
    wanted = {name: _kind(values) for name, values in splits["train"].items()}
    for split, tensors in splits.items():
        found = {name: _kind(values) for name, values in tensors.items()}
        if found != wanted:
            raise TiebreakError(f"{split} holds {_listing(found)}, but train holds {_listing(wanted)}")


def _listing(kinds: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in kinds.items())


def _kind(values: Tensor) -> str:
    """The type and the size of one example.

    >>> _kind(torch.zeros(7, 3, 2))
    'float32 [3, 2]'
    """
    return f"{str(values.dtype).removeprefix('torch.')} {list(values.shape[1:])}"


def _checksum(splits: Mapping[str, Tensors]) -> str:
    hasher = hashlib.sha256()
    for split in SPLITS:
        for name, values in splits[split].items():
            hasher.update(f"{split} {name} {_kind(values)} {len(values)}\n".encode())
            hasher.update(values.numpy().tobytes())
    return hasher.hexdigest()

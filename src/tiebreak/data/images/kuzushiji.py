"""Classical Japanese characters: KMNIST, and ten classes of Kuzushiji-Kanji.

| data set          | files                                      | keys                                |
|-------------------|--------------------------------------------|-------------------------------------|
| kmnist            | kmnist-{train,test}-{imgs,labels}.npz      | arr_0                               |
| kuzushiji-kanji10 | kuzushiji_kanji10.npz, a cut of our own    | images, labels, codepoints, is_test |

Neither has a validation split. In kuzushiji-kanji10 `is_test` marks a fixed sixth of every class.
Addresses, sha256 and licences: `sources.SOURCES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tiebreak.data.images.image_arrays import IMAGES, LABELS, Labelled, checked_images, checked_labels
from tiebreak.data.npz import ArraySpec, read_npz
from tiebreak.data.splits import Split
from tiebreak.errors import TiebreakError

HIRAGANA = tuple("おきすつなはまやれを")
KANJI = tuple("一云事人又入物出見大")
KEY = "arr_0"
KANJI_ARRAYS = {
    "images": IMAGES,
    "labels": LABELS,
    "codepoints": ArraySpec(ndim=(1,), kinds="U"),
    "is_test": ArraySpec(ndim=(1,), kinds="b"),
}


def read_kmnist(files: Mapping[str, Path]) -> Labelled:
    """Both halves of KMNIST, from its four files by file name."""
    train = read_kmnist_half(files["kmnist-train-imgs.npz"], files["kmnist-train-labels.npz"])
    test_file = files["kmnist-test-imgs.npz"]
    test = read_kmnist_half(test_file, files["kmnist-test-labels.npz"])
    checked_images(f"{test_file}: {KEY}", test.images, train.images.shape[1:])
    return Labelled({"train": train, "test": test}, f"{files['kmnist-train-labels.npz']}: {KEY}")


def read_kmnist_half(images_file: Path, labels_file: Path) -> Split:
    """The training or the test half of KMNIST."""
    pixels = read_npz(images_file, {KEY: IMAGES})[KEY]
    images = checked_images(f"{images_file}: {KEY}", pixels, pixels.shape[1:])
    labels = checked_labels(f"{labels_file}: {KEY}", read_npz(labels_file, {KEY: LABELS})[KEY], len(HIRAGANA))
    if len(images) != len(labels):
        raise TiebreakError(f"{images_file}: {KEY}: {len(images)} images, but {len(labels)} labels in {labels_file}")
    return Split(images, labels)


def read_kanji(path: Path) -> Labelled:
    """The training and test images of kuzushiji-kanji10."""
    arrays = read_npz(path, KANJI_ARRAYS)
    expected = [f"U+{ord(character):04X}" for character in KANJI]
    if arrays["codepoints"].tolist() != expected:
        raise TiebreakError(f"{path}: codepoints: not those of kuzushiji-kanji10, {' '.join(expected)}")
    images = checked_images(f"{path}: images", arrays["images"], arrays["images"].shape[1:])
    labels = checked_labels(f"{path}: labels", arrays["labels"], len(KANJI))
    is_test = arrays["is_test"]
    if not len(images) == len(labels) == len(is_test):
        raise TiebreakError(
            f"{path}: images has {len(images)} images, labels {len(labels)} labels, is_test {len(is_test)} marks"
        )
    if is_test.all() or not is_test.any():
        raise TiebreakError(f"{path}: is_test: marks {'all' if is_test.all() else 'none'} of the images")
    splits = {name: Split(images[chosen], labels[chosen]) for name, chosen in (("train", ~is_test), ("test", is_test))}
    return Labelled(splits, f"{path}: labels")

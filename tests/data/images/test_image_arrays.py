from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tiebreak.data.images.image_arrays import check_classes, read_medmnist, read_mnist
from tiebreak.errors import TiebreakError

Arrays = dict[str, NDArray[Any]]


def medmnist(classes: int = 4, sizes: tuple[int, int, int] = (20, 8, 12), shape: tuple[int, ...] = (5, 6)) -> Arrays:
    arrays: Arrays = {}
    for split, size in zip(("train", "val", "test"), sizes, strict=True):
        images = np.arange(size * int(np.prod(shape))).reshape(size, *shape) % 251
        labels = np.arange(size) % classes
        arrays |= {f"{split}_images": images.astype(np.uint8), f"{split}_labels": labels[:, None].astype(np.uint8)}
    return arrays


def pictures(count: int, *shape: int) -> NDArray[np.uint8]:
    return np.zeros((count, *shape), np.uint8)


def with_nan(count: int, *shape: int) -> NDArray[np.float32]:
    pixels = np.zeros((count, *shape), np.float32)
    pixels[0, 0, :2] = np.nan
    return pixels


def save(tmp_path: Path, arrays: Arrays) -> Path:
    np.savez(tmp_path / "own.npz", allow_pickle=False, **arrays)
    return tmp_path / "own.npz"


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 1), (5, 6, 3), (1, 1)])
@pytest.mark.parametrize("classes", [2, 7])
def test_classes_are_those_of_the_training_labels(tmp_path: Path, classes: int, shape: tuple[int, ...]) -> None:
    arrays = medmnist(classes, shape=shape)
    splits, where = read_medmnist(save(tmp_path, arrays), None)
    assert where == f"{tmp_path / 'own.npz'}: train_labels"
    for split, (images, labels) in splits.items():
        np.testing.assert_array_equal(images, arrays[f"{split}_images"], strict=True)
        assert labels.tolist() == arrays[f"{split}_labels"][:, 0].tolist()
    assert splits["train"].labels.max() + 1 == classes


EVERY_CLASS = "expected whole numbers 0, 1, 2, ..., one for each class"
BAD: dict[str, tuple[Arrays, str]] = {
    "sizes": ({"val_images": pictures(8, 6, 6)}, "val_images: images of shape (6, 6); those for training have (5, 6)"),
    "channels": ({"val_images": pictures(8, 5, 6, 1)}, "val_images: images of shape (5, 6, 1); those for training"),
    "counts": ({"test_labels": np.zeros(11, np.uint8)}, "test_images has 12 images, test_labels 11 labels"),
    "empty": ({"train_images": pictures(0, 5, 6)}, "train_images: empty, shape (0, 5, 6)"),
    "nan": ({"val_images": with_nan(8, 5, 6)}, "val_images: pixels are float32, 2 of them NaN; expected uint8, 0 to"),
    "float": (
        {"train_images": np.linspace(0, 1, 600).reshape(20, 5, 6)},
        "train_images: pixels are float64, 0 to 1; expected uint8, 0 to 255",
    ),
    "infinite": (
        {"train_images": np.full((20, 5, 6), np.inf)},
        "train_images: pixels are float64, inf to inf; expected uint8",
    ),
    "signed": (
        {"test_images": np.full((12, 5, 6), -3)},
        "test_images: pixels are int64, -3 to -3; expected uint8, 0 to 255",
    ),
    "no float": ({"test_images": np.zeros((0, 5, 6))}, "test_images: pixels are float64; expected uint8, 0 to 255"),
    "negative": ({"train_labels": np.arange(20) % 3 - 1}, f"train_labels: label -1 at 0; {EVERY_CLASS}"),
    "fraction": ({"train_labels": np.arange(20) / 2}, f"train_labels: label 0.5 at 1; {EVERY_CLASS}"),
    "huge": ({"train_labels": np.full(20, 1e300)}, f"train_labels: label 1e+300 at 0; {EVERY_CLASS}"),
    "nan label": ({"train_labels": np.full(20, np.nan)}, f"train_labels: label nan at 0; {EVERY_CLASS}"),
    "unsigned": ({"train_labels": np.full(20, 2**64 - 1, np.uint64)}, "train_labels: label 18446744073709551615 at 0"),
    "from one": ({"train_labels": np.arange(20) % 4 + 1}, "train_labels: no training image of class 0; labels should"),
    "gap": ({"train_labels": np.array([0, 1, 3] + [0] * 17)}, "train_labels: no training image of class 2; labels"),
    "one class": ({"train_labels": np.zeros(20, int)}, "train_labels: one class only; at least two are needed"),
    "unseen": ({"test_labels": np.arange(12)}, "test_labels: label 4 at 4; expected whole numbers 0 to 3"),
    "text": ({"val_labels": np.full(8, "cat")}, "val_labels: is <U3; expected unsigned integers or integers or"),
    "several": ({"val_labels": np.zeros((8, 14), int)}, "val_labels: shape (8, 14); expected one label an image"),
    "flat": ({"train_images": pictures(20, 30)}, "train_images: has shape (20, 30); expected 3 or 4 dimensions"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_contents_name_file_and_key(tmp_path: Path, case: str) -> None:
    changed, message = BAD[case]
    path = save(tmp_path, medmnist() | changed)
    with pytest.raises(TiebreakError) as caught:
        read_medmnist(path, None)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("shape", [(3, 5, 6), (5, 6, 2), (5, 6, 4)])
def test_channels_are_one_or_three_and_come_last(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(TiebreakError) as caught:
        read_medmnist(save(tmp_path, medmnist(shape=shape)), None)
    line = f"train_images: images of shape {shape}; expected (height, width) or (height, width, 1 or 3)"
    assert str(caught.value).endswith(line)


def test_a_small_file_that_claims_two_gigabytes(tmp_path: Path) -> None:
    path = save(tmp_path, medmnist())
    content = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": (2_000_000, 25, 40)}
    np.lib.format.write_array_header_1_0(content, header)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "big.npz", "w") as new:
        for name in old.namelist():
            claim = content.getvalue() + bytes(200_000)
            new.writestr(name, claim if name == "train_images.npy" else old.read(name))
    assert (tmp_path / "big.npz").stat().st_size < 210_000
    with pytest.raises(
        TiebreakError, match=r"big\.npz: train_images: claims shape .* 2,000,000,000 bytes, and has 200,"
    ):
        read_medmnist(tmp_path / "big.npz", None)


def test_pickled_truncated_or_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, allow_pickle=True, **(medmnist() | {"train_labels": np.array([None] * 20)}))
    with pytest.raises(TiebreakError, match=r"own\.npz: train_labels: holds pickled objects, which are never read"):
        read_medmnist(path, None)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(TiebreakError, match=r"own\.npz: truncated or damaged"):
        read_medmnist(path, None)
    path.write_text("label,pixel")
    with pytest.raises(TiebreakError, match=r"own\.npz: not an npz file"):
        read_mnist(path, 10)


@pytest.mark.parametrize(("labels", "missing"), [([1, 2], 0), ([0, 2], 1), ([0, 1], 2)])
def test_the_first_missing_class_is_named(labels: list[int], missing: int) -> None:
    with pytest.raises(TiebreakError, match=f"x: no training image of class {missing}; labels should be 0 to 2"):
        check_classes("x", np.array(labels), 3)

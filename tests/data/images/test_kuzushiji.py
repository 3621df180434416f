from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.real_data import need
from tiebreak.data.fetch import check_fetchable, find_source
from tiebreak.data.images.image_data import checksum
from tiebreak.data.images.image_data import load as load_images
from tiebreak.data.images.kuzushiji import HIRAGANA, KANJI, read_kmnist_half
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

Arrays = dict[str, NDArray[Any]]


def real(folder: str) -> Path:
    return need(folder) / folder


def pictures(count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(count).integers(0, 256, (count, 5, 6)).astype(np.uint8)


def write_kmnist(folder: Path, **changes: NDArray[Any]) -> Path:
    """The four files, with 120 training and 30 test images; `changes` by part, such as test_imgs."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: Arrays = {}
    for half, count in (("train", 120), ("test", 30)):
        parts |= {f"{half}_imgs": pictures(count), f"{half}_labels": (np.arange(count) % 10).astype(np.uint8)}
    for part, array in (parts | changes).items():
        np.savez(folder / f"kmnist-{part.replace('_', '-')}.npz", array)
    return folder


def kanji(**changes: NDArray[Any]) -> Arrays:
    codepoints = np.array([f"U+{ord(character):04X}" for character in KANJI])
    arrays = {"images": pictures(180), "labels": np.arange(180) % 10, "is_test": np.arange(180) // 10 % 6 == 5}
    return {**arrays, "codepoints": codepoints, **changes}


def write_kanji(folder: Path, arrays: Arrays) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "kuzushiji_kanji10.npz", allow_pickle=False, **arrays)
    return folder


@pytest.mark.parametrize("subfolder", ["kmnist", "."])
def test_kmnist_is_two_halves_with_a_sixth_held_out(tmp_path: Path, subfolder: str) -> None:
    write_kmnist(tmp_path / subfolder)
    data = load_images("kmnist", tmp_path)
    assert data.sizes == {"train": 100, "val": 20, "test": 30}
    assert [data.counts(split) for split in ("train", "val", "test")] == [[10] * 10, [2] * 10, [3] * 10]
    assert data.class_names == HIRAGANA == tuple("おきすつなはまやれを")
    assert (data.official, data.licence) == (False, "CC BY-SA 4.0")
    assert "Clanuwat" in data.citation
    whole = {image.tobytes() for image in pictures(120)}
    assert {image.tobytes() for split in ("train", "val") for image in data.images[split]} == whole
    np.testing.assert_array_equal(data.images["test"], pictures(30))


def test_the_checksum_is_of_all_four_files(tmp_path: Path) -> None:
    write_kmnist(tmp_path)
    before = checksum("kmnist", tmp_path)
    assert before == load_images("kmnist", tmp_path).checksum
    assert len(before) == 64
    write_kmnist(tmp_path, test_labels=np.zeros(30, np.uint8))
    assert checksum("kmnist", tmp_path) != before


def test_half_of_kmnist_is_not_found(tmp_path: Path, empty_cache: Path) -> None:
    write_kmnist(tmp_path)
    (tmp_path / "kmnist-train-imgs.npz").unlink()
    with pytest.raises(
        TiebreakError, match=r"kmnist: kmnist-train-imgs\.npz .* not found in .*`tiebreak data fetch km"
    ):
        load_images("kmnist", tmp_path)
    with pytest.raises(TiebreakError, match=r"not found in .*`tiebreak data fetch kmnist`"):
        load_images("kmnist", real("kmnist_test").parent)


BAD_KMNIST: dict[str, tuple[Arrays, str]] = {
    "counts": ({"test_labels": np.zeros(29, np.uint8)}, "kmnist-test-imgs.npz: arr_0: 30 images, but 29 labels in "),
    "labels": ({"train_labels": np.full(120, 10)}, "kmnist-train-labels.npz: arr_0: label 10 at 0; expected whole num"),
    "classes": ({"train_labels": np.zeros(120, int)}, "kmnist-train-labels.npz: arr_0: no training image of class 1"),
    "sizes": ({"test_imgs": np.zeros((30, 6, 6), np.uint8)}, "kmnist-test-imgs.npz: arr_0: images of shape (6, 6); th"),
    "pixels": ({"test_imgs": np.zeros((30, 5, 6))}, "kmnist-test-imgs.npz: arr_0: pixels are float64, 0 to 0; expec"),
}


@pytest.mark.parametrize("case", BAD_KMNIST)
def test_bad_kmnist_names_file_and_key(tmp_path: Path, case: str) -> None:
    changes, message = BAD_KMNIST[case]
    with pytest.raises(TiebreakError) as caught:
        load_images("kmnist", write_kmnist(tmp_path, **changes))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_the_real_test_half_of_kmnist() -> None:
    folder = real("kmnist_test")
    half = read_kmnist_half(folder / "kmnist-test-imgs.npz", folder / "kmnist-test-labels.npz")
    assert half.images.shape == (10_000, 28, 28)
    assert np.bincount(half.labels).tolist() == [1000] * 10
    for file in find_source("kmnist").files[2:]:
        assert f"sha256:{hashlib.sha256((folder / file.filename).read_bytes()).hexdigest()}" == file.checksum
    lines = (folder / "kmnist_classmap.csv").read_text("utf-8").split()[1:]
    assert tuple(line.split(",")[2] for line in lines) == HIRAGANA


@pytest.mark.parametrize("subfolder", ["kuzushiji-kanji10", "kuzushiji_kanji10", "."])
def test_kanji_keeps_its_test_images_and_holds_out_a_sixth(tmp_path: Path, subfolder: str) -> None:
    arrays = kanji()
    write_kanji(tmp_path / subfolder, arrays)
    data = load_images("kuzushiji-kanji10", tmp_path)
    assert data.sizes == {"train": 125, "val": 25, "test": 30}
    assert data.class_names == KANJI
    assert data.split_rule == "validation: a sixth of the training images of every class"
    np.testing.assert_array_equal(data.images["test"], arrays["images"][arrays["is_test"]])
    train = {image.tobytes() for split in ("train", "val") for image in data.images[split]}
    assert train == {image.tobytes() for image in arrays["images"][~arrays["is_test"]]}
    assert checksum("kuzushiji-kanji10", tmp_path) == data.checksum


BAD_KANJI: dict[str, tuple[Arrays, str]] = {
    "other characters": (
        {"codepoints": np.array(["U+4E00"] * 10)},
        "codepoints: not those of kuzushiji-kanji10, U+4E0",
    ),
    "counts": ({"is_test": np.ones(9, bool)}, "images has 180 images, labels 180 labels, is_test 9 marks"),
    "no test": ({"is_test": np.zeros(180, bool)}, "is_test: marks none of the images"),
    "no training": ({"is_test": np.ones(180, bool)}, "is_test: marks all of the images"),
    "marks": ({"is_test": np.zeros(180, int)}, "is_test: is int64; expected true or false"),
    "labels": ({"labels": np.arange(180)}, "labels: label 10 at 10; expected whole numbers 0 to 9"),
    "classes": ({"labels": np.zeros(180, int)}, "labels: no training image of class 1; labels should be 0 to 9"),
}


@pytest.mark.parametrize("case", BAD_KANJI)
def test_bad_kanji_names_file_and_key(tmp_path: Path, case: str) -> None:
    changes, message = BAD_KANJI[case]
    with pytest.raises(TiebreakError) as caught:
        load_images("kuzushiji-kanji10", write_kanji(tmp_path, kanji(**changes)))
    assert str(caught.value).startswith(f"{tmp_path / 'kuzushiji_kanji10.npz'}: {message}")


def test_kanji_is_not_fetched_but_put_somewhere(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(TiebreakError) as caught:
        check_fetchable(find_source("kuzushiji-kanji10"))
    assert str(caught.value).startswith("kuzushiji-kanji10 cannot be fetched")
    assert str(empty_cache / "kuzushiji-kanji10") in str(caught.value)
    with pytest.raises(TiebreakError, match="not for download: put it there, name its folder with --data-dir"):
        load_images("kuzushiji-kanji10", tmp_path)
    write_kanji(empty_cache / "kuzushiji-kanji10", kanji())  # as advised; another file than ours is a copy, not damage
    assert load_images("kuzushiji-kanji10").official is False


def test_real_kanji(tmp_path: Path) -> None:
    folder = real("kuzushiji_kanji10")
    data = load_images("kuzushiji-kanji10", folder.parent)
    assert data.official is True
    assert data.sizes == {"train": 9680, "val": 1935, "test": 2316}
    assert data.class_names == tuple("一云事人又入物出見大")
    assert data.images["train"].shape[1:] == (28, 28)
    train, val = np.array(data.counts("train")), np.array(data.counts("val"))
    assert np.abs(val - (train + val) / 6).max() < 1
    assert hashlib.sha256(data.images["val"].tobytes()).hexdigest()[:16] == "26338921c30ce5d8"  # fixed for ever
    shutil.copy(folder / "kuzushiji_kanji10.npz", tmp_path)
    assert load_images("kuzushiji-kanji10", tmp_path).checksum == data.checksum

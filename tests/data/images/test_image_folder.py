from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tiebreak.data.images.image_data import ImageData, checksum
from tiebreak.data.images.image_data import load as load_images
from tiebreak.data.images.image_folder import folder_checksum, list_folder, load_folder
from tiebreak.data.splits import permutation
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream

SHAPE = (4, 5)


def fill(folder: Path, count: int, shape: tuple[int, ...] = SHAPE, suffix: str = "png") -> None:
    """`count` different images into a folder, called 0, 1, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        pixels = np.random.default_rng([index, *os.fsencode(folder.name)]).integers(0, 256, shape).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{index}.{suffix}")


def by_class(root: Path, counts: Mapping[str, int]) -> Path:
    for name, count in counts.items():
        fill(root / name, count)
    return root


def by_split(root: Path, classes: tuple[str, ...] = ("cat", "dog")) -> Path:
    for split, count in (("train", 5), ("val", 2), ("test", 3)):
        by_class(root / split, dict.fromkeys(classes, count))
    return root


def load(root: Path) -> ImageData:
    return load_images(f"{root}/")


def refusal(root: Path) -> str:
    """The one line about the folder, which checksum and load agree on, with its path as `.`"""
    lines = []
    for function in (checksum, load_images):
        with pytest.raises(TiebreakError) as caught:
            function(f"{root}/")
        lines.append(str(caught.value))
    assert lines[0] == lines[1]
    assert lines[0].isprintable()
    return lines[0].replace(str(root), ".")


def test_folders_by_split_are_taken_as_they_are(tmp_path: Path) -> None:
    data = load(by_split(tmp_path))
    assert data.sizes == {"train": 10, "val": 4, "test": 6}
    assert (data.classes, data.class_names) == (2, ("cat", "dog"))
    assert data.labels["test"].tolist() == [0, 0, 0, 1, 1, 1]
    assert data.labels["test"].dtype == np.int64
    assert data.split_rule == "as in the folders train, val and test"
    assert (data.official, data.licence, data.citation) == (None, "", "")
    second_dog = np.asarray(Image.open(tmp_path / "test" / "dog" / "1.png"))
    np.testing.assert_array_equal(data.images["test"][4], second_dog, strict=True)


def test_folders_by_class_are_split_70_15_15(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"b": 40, "a": 20, "c": 7})
    data = load(root)
    assert data.class_names == ("a", "b", "c")
    assert {split: data.counts(split) for split in data.sizes} == {
        "train": [14, 28, 5],
        "val": [3, 6, 1],
        "test": [3, 6, 1],
    }
    assert data.split_rule == "70/15/15 of every class"
    everything = [image.tobytes() for images in data.images.values() for image in images]
    assert len(set(everything)) == len(everything) == 67


def test_the_split_never_moves_and_knows_no_other_class(tmp_path: Path) -> None:
    few = list_folder(by_class(tmp_path / "few", {"a": 20, "b": 20}))
    assert [path.name for path in few.files["test"][0]] == ["6.png", "8.png", "9.png"]
    many = list_folder(by_class(tmp_path / "many", {"0": 9, "a": 20, "b": 20}))
    for split in ("train", "val", "test"):
        assert [[path.name for path in files] for files in few.files[split]] == [
            [path.name for path in files] for files in many.files[split][1:]
        ]


def test_nothing_depends_on_where_the_folder_is_or_in_which_order_it_was_written(tmp_path: Path) -> None:
    first = by_class(tmp_path / "first", {"a": 9, "b": 12})
    second = tmp_path / "second"
    for path in sorted(first.rglob("*.png"), reverse=True):
        target = second / path.relative_to(first)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    one, two = load(first), load(second)
    assert one.checksum == two.checksum == checksum(f"{first}/") == checksum(f"{second}/")
    for split in one.sizes:
        np.testing.assert_array_equal(one.images[split], two.images[split])


def test_the_checksum_sees_names_classes_and_contents(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 9, "b": 9})
    seen = {checksum(f"{root}/")}
    (root / "notes.txt").write_text("left alone")
    (root / "a" / ".hidden.png").write_text("left alone")
    assert checksum(f"{root}/") in seen
    (root / "a" / "0.png").rename(root / "a" / "zero.png")
    seen.add(checksum(f"{root}/"))
    (root / "b" / "8.png").rename(root / "a" / "8b.png")
    seen.add(checksum(f"{root}/"))
    shutil.copy(root / "a" / "1.png", root / "a" / "2.png")
    seen.add(checksum(f"{root}/"))
    assert len(seen) == 4
    assert folder_checksum(list_folder(root)) in seen


def test_hidden_files_other_suffixes_and_deeper_folders_are_left_alone(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 7, "b": 7})
    plain = load(root)
    (root / ".git").mkdir()
    (root / "a" / ".DS_Store").touch()
    (root / "a" / "labels.csv").touch()
    (root / "b" / ".self").symlink_to(".self")
    fill(root / "b" / "deeper", 3)
    assert load(root).checksum == plain.checksum
    assert load(root).sizes == plain.sizes


def test_colour_jpegs_and_links(tmp_path: Path) -> None:
    fill(tmp_path / "real", 7, (6, 8, 3), "jpg")
    fill(tmp_path / "own" / "b", 7, (6, 8), "JPG")
    (tmp_path / "own" / "a").symlink_to(tmp_path / "real")
    assert load(tmp_path / "own").images["train"].shape == (10, 6, 8, 3)


def test_one_of_the_names_of_splits_may_be_a_class(tmp_path: Path) -> None:
    assert load(by_class(tmp_path, {"train": 7, "bus": 7})).class_names == ("bus", "train")


def test_names_of_classes_are_printable(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff\n")
    data = load(by_class(tmp_path, {odd: 7, "草": 7}))
    assert data.class_names == ("草", "\\udcff ")
    (shown,) = list_folder(tmp_path).files["val"][1]
    order = permutation(7, stream(0, "split", "folder", "\\udcff\\n"))  # not moved by how a name is shown
    assert shown == sorted((tmp_path / odd).iterdir())[order[0]]
    assert all(line.isprintable() for line in data.description())


def test_images_of_other_sizes_are_refused_with_the_remedy_or_resized(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"cat": 8, "dog": 8})
    Image.fromarray(np.zeros((9, 7), np.uint8)).save(root / "dog" / "odd.png")
    (root / "notes.txt").touch()
    with pytest.raises(TiebreakError, match=r"odd\.png: 7x9 pixels.*resize = 4"):
        load(root)
    data = load_images(f"{root}/", None, resize=6)
    assert {images.shape[1:] for images in data.images.values()} == {(6, 6)}
    assert any("resized to 6x6" in note for note in data.notes)
    assert any("left out" in note and "notes.txt" in note for note in data.notes)
    assert data.checksum == checksum(f"{root}/")
    assert [line.strip() for line in data.description()][2:4] == list(data.notes)


def test_resizing_is_for_folders_only(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"mnist5k: options\.resize"):
        load_images("mnist5k", None, resize=8)
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    with pytest.raises(TiebreakError, match=r"a\.npz: options\.resize"):
        load_images(str(tmp_path / "a.npz"), None, resize=8)


def test_description(tmp_path: Path) -> None:
    data = load(by_split(tmp_path))
    assert data.description() == [
        f"{tmp_path}/: 2 classes, 10 train, 4 val, 6 test; 5x4 pixels, grey",
        f"{tmp_path}/: split as in the folders train, val and test; sha256 {data.checksum}",
        "  cat: 5 train, 2 val, 3 test",
        "  dog: 5 train, 2 val, 3 test",
    ]


def test_an_empty_class_is_named_with_what_is_in_it(tmp_path: Path) -> None:
    by_class(tmp_path, {"a": 7})
    (tmp_path / "b").mkdir()
    assert refusal(tmp_path).startswith("./b: no PNG or JPEG image in it (others or hidden: 0)")
    (tmp_path / "b" / "x.gif").touch()
    (tmp_path / "b" / ".x.png").touch()
    assert refusal(tmp_path).startswith("./b: no PNG or JPEG image in it (others or hidden: 2)")


def test_no_folder_for_any_class(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    assert refusal(tmp_path).startswith(".: no folder in it (files or hidden: 3)")


def test_a_single_class(tmp_path: Path) -> None:
    assert refusal(by_class(tmp_path / "one", {"a": 7})).startswith(".: one class only, a")
    assert refusal(by_split(tmp_path / "three", ("a",))).startswith(".: one class only, a")


def test_too_few_to_split(tmp_path: Path) -> None:
    assert refusal(by_class(tmp_path, {"a": 7, "b": 6})).startswith("./b: 6 images, too few to be split 70/15/15")
    shutil.rmtree(tmp_path / "b")
    assert refusal(by_class(tmp_path, {"b": 1})).startswith("./b: 1 image, too few")


def test_splits_that_are_not_complete(tmp_path: Path) -> None:
    by_split(tmp_path)
    (tmp_path / "val").rename(tmp_path / "valid")
    assert refusal(tmp_path).startswith(".: has the folders test, train, valid; expected one folder for each class, or")


def test_splits_with_other_classes(tmp_path: Path) -> None:
    by_split(tmp_path)
    (tmp_path / "val" / "dog").rename(tmp_path / "val" / "fox")
    assert refusal(tmp_path).startswith("./val/dog: this class of train has no folder here")
    shutil.copytree(tmp_path / "val" / "fox", tmp_path / "val" / "dog")
    assert refusal(tmp_path).startswith("./val/fox: no such class in train")


def test_links_to_nothing_and_to_themselves(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 7, "b": 7})
    link = root / "a" / "x.png"
    for target in ("nowhere", "."):
        link.symlink_to(target)
        assert refusal(root).startswith("./a/x.png: not a file, or a link to nothing")
        link.unlink()
    link.symlink_to("x.png")
    assert refusal(root).startswith("./a/x.png: cannot be read: Too many levels of symbolic links")
    link.unlink()
    (root / "c").symlink_to("c")
    assert refusal(root).startswith("./c: cannot be read: Too many levels of symbolic links")


def test_a_class_that_is_a_link_to_the_whole_is_no_endless_loop(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 7, "b": 7})
    (root / "c").symlink_to(root)
    assert refusal(root).startswith("./c: no PNG or JPEG image in it (others or hidden: 3)")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 7, "b": 7})
    os.mkfifo(root / "a" / "x.png")
    assert refusal(root).startswith("./a/x.png: not a file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 7, "b": 7})
    (root / "b").chmod(0)
    try:
        assert refusal(root).startswith("./b: cannot be read: Permission denied")
    finally:
        (root / "b").chmod(0o700)


def test_an_image_that_is_none_is_named(tmp_path: Path) -> None:
    root = by_class(tmp_path, {"a": 7, "b": 7})
    (root / "b" / "3.png").write_text("<html>sign in first</html>")
    with pytest.raises(TiebreakError, match=r"/b/3\.png: not a PNG or JPEG image; remove or replace it"):
        load_folder(list_folder(root))

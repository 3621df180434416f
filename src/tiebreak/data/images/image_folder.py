"""A user's own folder of images, by class; the classes are the names of the subfolders.

| layout                                         | splits                                             |
|------------------------------------------------|----------------------------------------------------|
| FOLDER/{train,val,test}/CLASS/*.png, jpg, jpeg | as the folders say                                 |
| FOLDER/CLASS/*.png, jpg, jpeg                  | 70/15/15 of every class, by the stream "split"     |

Everything is read in the order of names, so that results do not depend on the file system. Hidden files, files with
other suffixes and deeper folders are left out, and counted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tiebreak.data.checksums import file_checksum
from tiebreak.data.images import image_files
from tiebreak.data.images.image_files import SUFFIXES
from tiebreak.data.left_out import left_out
from tiebreak.data.splits import SPLITS, Split, permutation
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream
from tiebreak.text import number_of, printable

HELD_OUT_PERCENT = 15  # of every class for validation, and as many for testing
LEAST = -(-100 // HELD_OUT_PERCENT)  # images of a class that can be split so
LAYOUTS = "expected one folder for each class, or train, val and test with one folder for each class"

Files = tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The image files of a folder: for every split, those of every class, sorted."""

    root: Path
    class_names: tuple[str, ...]
    files: Mapping[str, tuple[Files, ...]]
    split_rule: str

    def all_files(self) -> list[Path]:
        """Every image file, in the order of names."""
        return sorted((path for split in SPLITS for files in self.files[split] for path in files), key=Path.as_posix)


def list_folder(root: Path) -> Listing:
    """Find the images and their classes and splits; opens no image."""
    found = _subfolders(root)
    if len(found.keys() & set(SPLITS)) < 2:  # one of these names alone may be a class: a train, a car, a plane
        return _split_by_class(root, found)
    if found.keys() != set(SPLITS):
        raise TiebreakError(f"{printable(root)}: has the folders {_names(found)}; {LAYOUTS}")
    classes = {split: _subfolders(found[split]) for split in SPLITS}
    for split in ("val", "test"):
        _check_same_classes(found[split], classes[split], classes["train"])
    files = {split: tuple(_images(folder) for folder in folders.values()) for split, folders in classes.items()}
    return _listing(root, [*classes["train"]], files, "as in the folders train, val and test")


def load_folder(listing: Listing, resize: int = 0) -> tuple[dict[str, Split], tuple[str, ...]]:
    """Read the images of every split, and say what was resized and what was left out.

    `resize` above 0: all become that many pixels wide and high.
    """
    paths = listing.all_files()
    form = image_files.survey(paths, resize=resize)
    other = form.of_other_size
    splits = {}
    for split, by_class in listing.files.items():
        images = image_files.read([path for files in by_class for path in files], form, resize=resize > 0)
        splits[split] = Split(images, np.repeat(np.arange(len(by_class)), [len(files) for files in by_class]))
    resized = (f"resized to {resize}x{resize} pixels: {other:,} of {number_of(len(paths), 'image')}",) if other else ()
    return splits, (*resized, *left_out(listing.root, set(paths)))


def folder_checksum(listing: Listing) -> str:
    """The sha256 of the images' names, relative to the folder, and contents; wherever the folder is."""
    hasher = hashlib.sha256()
    for path in listing.all_files():
        name = path.relative_to(listing.root).as_posix()
        hasher.update(os.fsencode(name) + b"\0" + bytes.fromhex(file_checksum(path)))
    return hasher.hexdigest()


def _split_by_class(root: Path, found: Mapping[str, Path]) -> Listing:
    files: dict[str, list[Files]] = {split: [] for split in SPLITS}
    for name, folder in found.items():
        images = _images(folder)
        if len(images) < LEAST:
            raise TiebreakError(
                f"{printable(folder)}: {number_of(len(images), 'image')}, too few to be split "
                f"70/15/15; at least {LEAST} are needed, or folders train, val and test of your own"
            )
        count = len(images) * HELD_OUT_PERCENT // 100
        order = permutation(len(images), stream(0, "split", "folder", _stream_name(name)))
        for split, part in (("val", order[:count]), ("test", order[count : 2 * count]), ("train", order[2 * count :])):
            files[split].append(tuple(images[index] for index in np.sort(part)))
    return _listing(root, [*found], {split: tuple(lists) for split, lists in files.items()}, "70/15/15 of every class")


def _stream_name(name: str) -> str:
    """A class's name in its stream. Separate from `printable`: rewording what is shown must not move a split."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)


def _listing(root: Path, names: list[str], files: Mapping[str, tuple[Files, ...]], split_rule: str) -> Listing:
    if len(names) < 2:
        raise TiebreakError(f"{printable(root)}: one class only, {printable(names[0])}; at least two are needed")
    return Listing(root=root, class_names=tuple(map(printable, names)), files=files, split_rule=split_rule)


def _check_same_classes(folder: Path, found: Mapping[str, Path], expected: Mapping[str, Path]) -> None:
    for name in sorted(found.keys() ^ expected.keys()):
        problem = "no such class in train" if name in found else "this class of train has no folder here"
        raise TiebreakError(f"{printable(folder / name)}: {problem}; every split needs the same classes")


def _subfolders(folder: Path) -> dict[str, Path]:
    """The folders in a folder by name, sorted; hidden ones are ignored."""
    entries = _entries(folder)
    found = {path.name: path for path, is_folder in entries if is_folder}
    if not found:
        raise TiebreakError(f"{printable(folder)}: no folder in it (files or hidden: {len(entries)}); {LAYOUTS}")
    return found


def _images(folder: Path) -> Files:
    """The image files in a folder, sorted; a folder without any is an error."""
    entries = _entries(folder)
    found = tuple(path for path, _ in entries if path.suffix.lower() in SUFFIXES and not _is_hidden(path.name))
    for path in found:
        if not path.is_file():
            raise TiebreakError(f"{printable(path)}: not a file, or a link to nothing; remove it")
    if not found:
        raise TiebreakError(f"{printable(folder)}: no PNG or JPEG image in it (others or hidden: {len(entries)})")
    return found


def _entries(folder: Path) -> list[tuple[Path, bool]]:
    """What is in a folder, by name, and whether it is a folder that is not hidden; links are followed."""
    try:
        with os.scandir(folder) as entries:
            found = [(folder / entry.name, not _is_hidden(entry.name) and entry.is_dir()) for entry in entries]
        return sorted(found, key=lambda item: item[0].name)
    except OSError as error:
        where = error.filename or folder
        raise TiebreakError(f"{printable(where)}: cannot be read: {error.strerror}") from None


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _names(found: Mapping[str, Path]) -> str:
    return ", ".join(map(printable, found))

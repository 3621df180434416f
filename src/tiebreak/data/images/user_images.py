"""A user's own images: an npz file in the MedMNIST layout, or a folder of PNG and JPEG files by class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.checksums import file_checksum
from tiebreak.data.images.image_arrays import read_medmnist
from tiebreak.data.images.image_folder import folder_checksum, list_folder, load_folder
from tiebreak.data.splits import Split
from tiebreak.errors import TiebreakError
from tiebreak.text import printable


@dataclass(frozen=True, kw_only=True, eq=False)
class UserImages:
    """What was read, and where the splits come from."""

    splits: dict[str, Split]
    class_names: tuple[str, ...]
    checksum: str
    split_rule: str
    notes: tuple[str, ...] = ()  # what was resized, what was left out


def user_checksum(path: Path) -> str:
    """The sha256 of a file, or of the names and contents of a folder's images."""
    return folder_checksum(list_folder(path)) if path.is_dir() else file_checksum(path)


def load_user_images(path: Path, resize: int = 0) -> UserImages:
    """Read and check a user's own images; those of a folder are resized where `resize` is above 0."""
    if path.is_dir():
        listing = list_folder(path)
        splits, notes = load_folder(listing, resize)
        return UserImages(
            splits=splits,
            class_names=listing.class_names,
            checksum=folder_checksum(listing),
            split_rule=listing.split_rule,
            notes=notes,
        )
    if resize:
        raise TiebreakError(f"{printable(path)}: options.resize is for a folder of images, not for a file; remove it")
    splits = read_medmnist(path, None).splits
    names = tuple(map(str, range(int(splits["train"].labels.max()) + 1)))
    return UserImages(splits=splits, class_names=names, checksum=file_checksum(path), split_rule="as in the file")

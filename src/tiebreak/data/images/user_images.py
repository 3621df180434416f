"""A user's own images: an npz file in the MedMNIST layout, or a folder of PNG and JPEG files by class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.checksums import file_checksum
from tiebreak.data.images.image_arrays import read_medmnist
from tiebreak.data.images.image_folder import folder_checksum, list_folder, load_folder
from tiebreak.data.splits import Split


@dataclass(frozen=True, kw_only=True, eq=False)
class UserImages:
    """What was read, and where the splits come from."""

    splits: dict[str, Split]
    class_names: tuple[str, ...]
    checksum: str
    split_rule: str


def user_checksum(path: Path) -> str:
    """The sha256 of a file, or of the names and contents of a folder's images."""
    return folder_checksum(list_folder(path)) if path.is_dir() else file_checksum(path)


def load_user_images(path: Path) -> UserImages:
    """Read and check a user's own images."""
    if path.is_dir():
        listing = list_folder(path)
        return UserImages(
            splits=load_folder(listing),
            class_names=listing.class_names,
            checksum=folder_checksum(listing),
            split_rule=listing.split_rule,
        )
    splits = read_medmnist(path, None).splits
    names = tuple(map(str, range(int(splits["train"].labels.max()) + 1)))
    return UserImages(splits=splits, class_names=names, checksum=file_checksum(path), split_rule="as in the file")

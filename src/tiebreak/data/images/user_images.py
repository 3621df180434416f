"""A user's own images: an npz file in the MedMNIST layout, or a folder of PNG and JPEG files by class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.fetch import file_checksum, search_path
from tiebreak.data.images.image_arrays import read_medmnist
from tiebreak.data.images.image_folder import folder_checksum, list_folder, load_folder
from tiebreak.data.splits import Split
from tiebreak.errors import TiebreakError
from tiebreak.text import printable


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnImages:
    """What was read, and from where the splits are."""

    splits: dict[str, Split]
    class_names: tuple[str, ...]
    checksum: str
    split_rule: str


def find_own(name: str, data_dir: Path | None = None) -> Path:
    """The file or folder that a path means: seen from the current folder, or else from --data-dir and TIEBREAK_DATA."""
    path = Path(name).expanduser()
    places = [path, *(folder / path for folder in search_path(data_dir))]
    try:
        found = next((place for place in places if place.exists()), None)
        if found is None:
            raise TiebreakError(f"{printable(name)}: no such file or folder, from here or from --data-dir")
        if not (found.is_dir() or found.is_file()):
            raise TiebreakError(f"{printable(name)}: neither a file nor a folder")
    except OSError as error:
        raise TiebreakError(f"{printable(name)}: cannot look there: {error.strerror}") from None
    return found


def own_checksum(path: Path) -> str:
    """The sha256 of a file, or of the names and contents of a folder's images."""
    return folder_checksum(list_folder(path)) if path.is_dir() else file_checksum(path)


def load_own(path: Path) -> OwnImages:
    """Read and check a user's own images."""
    if path.is_dir():
        listing = list_folder(path)
        return OwnImages(
            splits=load_folder(listing),
            class_names=listing.class_names,
            checksum=folder_checksum(listing),
            split_rule=listing.split_rule,
        )
    splits = read_medmnist(path, None).splits
    names = tuple(map(str, range(int(splits["train"].labels.max()) + 1)))
    return OwnImages(splits=splits, class_names=names, checksum=file_checksum(path), split_rule="as in the file")

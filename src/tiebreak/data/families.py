"""The data of every family of tasks: which module loads it. Loaders are imported when they are asked for."""

from __future__ import annotations

import importlib
import itertools
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

MODULES: Mapping[str, str] = {  # each has `load` and `checksum`
    "classifier": "images.image_data",
    "translator": "pairs.pair_data",
    "node-classifier": "graphs.graph_data",
    "language": "text.corpus",
    "recogniser": "speech.speech_sets",
}


# What lies in a user's folder, or the ending of a user's file, of a family; all else is taken for images.
INSIDE: Mapping[str, tuple[str, ...]] = {
    "recogniser": (*(f"{folder}transcripts.tsv" for folder in ("", "train/", "val/", "test/")), "wavs"),
    "node-classifier": ("edges.csv",),
    "translator": ("train.tsv",),
    "language": ("train.txt", "ptb.train.txt"),
}
ENDINGS: Mapping[str, str] = {".tsv": "translator", ".txt": "language"}
SOUNDS = (".wav", ".flac", ".mp3", ".ogg", ".m4a")  # more than are read: the loader says which are
PICTURES = (".png", ".jpg", ".jpeg")
LOOKED_AT, FOLDERS = 1000, 100  # entries of a folder, folders in it: a glance, however many there are


class Loader(Protocol):
    """A module of this room that knows the data sets of one family."""

    def load(self, name: str, data_dir: Path | None) -> Any:
        """The data set called `name`, or the user's own at that path, checked and split.

        Its type is the family's; all have name, checksum, official, licence, citation, sizes and description().
        """

    def checksum(self, name: str, data_dir: Path | None) -> str:
        """The checksum that the loaded data set would have, found without loading it."""


def loader(family: str) -> Loader:
    """The module for a family."""
    return importlib.import_module(f"tiebreak.data.{MODULES[family]}")


def likely(path: Path) -> str:
    """The family that a user's own data looks made for, by names alone."""
    try:
        if path.is_dir():
            return _of_folder(path)
        if path.name == "transcripts.tsv" or path.name.lower().endswith(SOUNDS):
            return "recogniser"  # whose loader says that it wants their folder
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as arrays:
                return "node-classifier" if "edges.npy" in arrays.namelist() else "classifier"
    except (OSError, zipfile.BadZipFile):  # the loader will say what is wrong with it
        return "classifier"
    return ENDINGS.get(path.suffix.lower(), "classifier")


def _of_folder(path: Path) -> str:
    """By what lies in it; then by the first sound in it, or the first sound or picture one level below."""
    for family, entries in INSIDE.items():
        if any((path / entry).exists() for entry in entries):
            return family
    names, folders = _glance(path)
    if any(name.endswith(SOUNDS) for name in names):
        return "recogniser"
    for folder in folders[:FOLDERS]:
        for name in _glance(folder)[0]:
            if name.endswith((*SOUNDS, *PICTURES)):
                return "recogniser" if name.endswith(SOUNDS) else "classifier"
    return "classifier"


def _glance(folder: Path) -> tuple[list[str], list[Path]]:
    """The first names of files in a folder, in small letters, and the first folders; hidden ones are left out."""
    with os.scandir(folder) as entries:
        seen = [entry for entry in itertools.islice(entries, LOOKED_AT) if not entry.name.startswith(".")]
    inner = [Path(entry.path) for entry in seen if entry.is_dir()]
    return sorted(entry.name.lower() for entry in seen if not entry.is_dir()), sorted(inner)


def load(family: str, name: str, data_dir: Path | None) -> Any:
    """A data set of a family."""
    return loader(family).load(name, data_dir)


def checksum(family: str, name: str, data_dir: Path | None) -> str:
    """Its checksum, found without loading it."""
    return loader(family).checksum(name, data_dir)

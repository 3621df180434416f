"""The data of every family: which module loads it, and which finds its files. Modules are imported when needed."""

from __future__ import annotations

import importlib
import itertools
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from tiebreak.data.fetch import Checked
from tiebreak.data.labelled.labelled_files import is_labelled

MODULES: Mapping[str, str] = {  # each has `load` and `checksum`
    "classifier": "images.image_data",
    "translator": "pairs.pair_data",
    "node-classifier": "graphs.graph_data",
    "language": "text.corpus",
    "recogniser": "speech.speech_sets",
    "text-classifier": "labelled.labelled_data",
}
FINDERS: Mapping[str, str] = {  # data sets whose files are not found by name alone; each module has `locate`, `verify`
    "ljspeech": "speech.ljspeech",
    "spoken-ljspeech": "speech.ljspeech",
}

# What a user's folder of a family contains, or how a user's file ends; everything else counts as images.
INSIDE: Mapping[str, tuple[str, ...]] = {
    "recogniser": (*(f"{folder}transcripts.tsv" for folder in ("", "train/", "val/", "test/")), "wavs"),
    "node-classifier": ("edges.csv", "features.csv", "labels.csv"),
    "translator": ("train.tsv",),
    "text-classifier": ("train.csv",),
    "language": ("train.txt", "ptb.train.txt"),
}
ENDINGS: Mapping[str, str] = {".tsv": "translator", ".txt": "language"}
SOUNDS = (".wav", ".flac", ".mp3", ".ogg", ".m4a")  # more than are supported: the loader says which are
PICTURES = (".png", ".jpg", ".jpeg")
MOST_ENTRIES, MOST_FOLDERS = 1000, 100  # of a folder that are looked at, however many there are


class Loader(Protocol):
    """A module of this room that knows the data sets of one family."""

    def load(self, name: str, data_dir: Path | None) -> Any:
        """The data set called `name`, or the user's own at that path, checked and split.

        Its type is the family's; all have name, checksum, official, licence, citation, sizes and description().
        """

    def checksum(self, name: str, data_dir: Path | None) -> str:
        """The checksum that the loaded data set would have, found without loading it."""


class Finder(Protocol):
    """A module of this room that knows where the files of a data set are: `fetch`, or one of its own."""

    def locate(self, name: str, data_dir: Path | None) -> dict[str, Path]:
        """Where the files are on this machine, by file name. Embedded: none."""

    def verify(self, name: str, data_dir: Path | None) -> dict[str, Checked]:
        """Those that have a published checksum, compared with it."""


def loader(family: str) -> Loader:
    """The module for a family."""
    return importlib.import_module(f"tiebreak.data.{MODULES[family]}")


def likely(path: Path) -> str:
    """The family that a user's own data looks made for, by names alone."""
    try:
        if path.is_dir():
            return _of_folder(path)
        if path.name == "transcripts.tsv" or path.name.lower().endswith(SOUNDS):
            return "recogniser"  # whose loader says that it needs their folder
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as arrays:
                return "node-classifier" if "edges.npy" in arrays.namelist() else "classifier"
        if path.name in INSIDE["node-classifier"]:
            return "node-classifier"  # whose loader says the same
        if path.suffix.lower() == ".csv" and path.is_file() and is_labelled(path):
            return "text-classifier"
    except (OSError, zipfile.BadZipFile):  # the loader will say what is wrong with it
        return "classifier"
    otherwise = "text-classifier" if path.suffix.lower() == ".csv" else "classifier"  # it names the columns it expects
    return ENDINGS.get(path.suffix.lower(), otherwise)


def _of_folder(path: Path) -> str:
    """By the names in it; then by the first sound in it, or the first sound or picture one level below."""
    for family, entries in INSIDE.items():
        if any((path / entry).exists() for entry in entries):
            return family
    names, folders = _first_entries(path)
    if any(name.endswith(SOUNDS) for name in names):
        return "recogniser"
    for folder in folders[:MOST_FOLDERS]:
        for name in _first_entries(folder)[0]:
            if name.endswith((*SOUNDS, *PICTURES)):
                return "recogniser" if name.endswith(SOUNDS) else "classifier"
    return "classifier"


def _first_entries(folder: Path) -> tuple[list[str], list[Path]]:
    """The first names of files in a folder, in lower case, and the first folders; hidden ones are ignored."""
    with os.scandir(folder) as entries:
        seen = [entry for entry in itertools.islice(entries, MOST_ENTRIES) if not entry.name.startswith(".")]
    inner = [Path(entry.path) for entry in seen if entry.is_dir()]
    return sorted(entry.name.lower() for entry in seen if not entry.is_dir()), sorted(inner)


def load(family: str, name: str, data_dir: Path | None) -> Any:
    """A data set of a family."""
    return loader(family).load(name, data_dir)


def checksum(family: str, name: str, data_dir: Path | None) -> str:
    """Its checksum, found without loading it."""
    return loader(family).checksum(name, data_dir)


def locate(name: str, data_dir: Path | None) -> dict[str, Path]:
    """Where the files of a data set are on this machine, by file name. Embedded: none."""
    return _finder(name).locate(name, data_dir)


def verify(name: str, data_dir: Path | None) -> dict[str, Checked]:
    """Those of its files that have a published checksum, compared with it."""
    return _finder(name).verify(name, data_dir)


def _finder(name: str) -> Finder:
    return cast(Finder, importlib.import_module(f"tiebreak.data.{FINDERS.get(name, 'fetch')}"))

"""The data of every family of tasks: which module loads it. Loaders are imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

MODULES: Mapping[str, str] = {  # each has `load` and `checksum`
    "classifier": "images",
    "translator": "pairs",
    "node-classifier": "graphs",
    "language": "corpus",
    "recogniser": "speech",
}


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


def load(family: str, name: str, data_dir: Path | None) -> Any:
    """A data set of a family."""
    return loader(family).load(name, data_dir)


def checksum(family: str, name: str, data_dir: Path | None) -> str:
    """Its checksum, found without loading it."""
    return loader(family).checksum(name, data_dir)

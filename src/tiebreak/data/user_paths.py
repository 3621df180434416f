"""A user's own data, named by a path: found on this machine, and checked for what every family requires."""

from __future__ import annotations

import os
from pathlib import Path

from tiebreak.data.fetch import search_path
from tiebreak.errors import TiebreakError
from tiebreak.text import printable


def find_user_path(name: str, data_dir: Path | None = None) -> Path:
    """The readable file or folder at a path: seen from the current folder, else from --data-dir or TIEBREAK_DATA."""
    path = Path(name).expanduser()
    places = [path, *(folder / path for folder in search_path(data_dir))]
    where = printable(name)
    try:
        found = next((place for place in places if place.exists()), None)
        if found is None:
            if link := next((place for place in places if place.is_symlink()), None):
                raise TiebreakError(f"{where}: a link to nothing or to itself ({printable(link)}): remove or repair it")
            raise TiebreakError(f"{where}: no such file or folder, here or in --data-dir")
        is_folder = found.is_dir()
        if not (is_folder or found.is_file()):
            raise TiebreakError(f"{where}: neither a file nor a folder")
    except OSError as error:
        raise TiebreakError(f"{where}: cannot be opened: {error.strerror}") from None
    if not os.access(found, os.R_OK | os.X_OK if is_folder else os.R_OK):
        raise TiebreakError(f"{where}: cannot be read: Permission denied")
    return found


def check_file(path: Path, hint: str = "") -> Path:
    """The path, if there is a file: a folder, or nothing, is an error that ends in the hint."""
    advice = f"; {hint}" if hint else ""
    try:
        if path.is_dir():
            raise TiebreakError(f"{printable(path)}: a folder, not a file{advice}")
        if not path.is_file():
            raise TiebreakError(f"{printable(path)}: no such file{advice}")
    except OSError as error:
        raise TiebreakError(f"{printable(path)}: cannot be opened: {error.strerror}") from None
    return path

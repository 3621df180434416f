"""The files that a program's runs are named by: those in its command, with the Python modules beside them they import.

What is not hashed cannot be noticed when it changes: installed packages, data that the program opens by itself, the
environment. The plan says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.plan.code_identity import Sources

MOST_BYTES = 16 << 20  # of a file that is hashed


@dataclass
class ProgramFiles:
    """Finds and hashes the files of commands; each file is read once."""

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)  # by name, as the plan shows it
    skipped: dict[str, str] = field(default_factory=dict)  # named in a command and not hashed: why
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of_command(self, arguments: Iterable[str]) -> dict[str, str]:
        """The hashes of the files that these arguments name, by name. `--key=FILE` names one too."""
        names = [name for argument in arguments for name in self._named(argument)]
        return {name: self.hashes[name] for name in sorted(set(names))}

    def of_module(self, module: str) -> dict[str, str]:
        """The hashes of the file of a Python module and of the modules beside it that it imports."""
        place = self.folder.joinpath(*module.split("."))
        path = next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()), None)
        if path is None:
            raise TiebreakError(f"program.function: no module {module!r} in {self.folder}")
        return {name: self.hashes[name] for name in sorted(self._hash(path))}

    def _named(self, argument: str) -> tuple[str, ...]:
        if argument not in self._known:
            found: list[str] = []
            for text in dict.fromkeys((argument, argument.partition("=")[2])):
                path = self.folder / text if text and len(text) < 1024 else None
                if path is None or not _is_file(path):
                    continue
                if path.stat().st_size > MOST_BYTES:
                    self.skipped[text] = f"larger than {MOST_BYTES >> 20} MB"
                else:
                    found += self._hash(path)
            self._known[argument] = tuple(found)
        return self._known[argument]

    def _hash(self, path: Path) -> list[str]:
        helpers: list[Path] = []
        if path.suffix == ".py":
            try:
                helpers = Sources().helper_files(path)
            except (TiebreakError, OSError, ValueError, RecursionError) as error:
                self.skipped[f"what {path.name} imports"] = str(error)
        names = []
        for each in (path, *helpers):
            name = _shown(each, self.folder)
            if name not in self.hashes:
                self.hashes[name] = hashlib.sha256(files.read_bytes(each)).hexdigest()[:20]
            names.append(name)
        return names


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # such as a name that is too long for one
        return False


def _shown(path: Path, folder: Path) -> str:
    """A file's name in the plan: relative to the folder where the command runs, if it lies below it."""
    path, folder = path.resolve(), folder.resolve()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)

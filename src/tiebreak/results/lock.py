"""One writer per results folder: a lock that the operating system releases when its holder dies."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tiebreak.errors import TiebreakError

LOCK_FILE = ".lock"


@contextmanager
def locked(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder. When another process has it, say so through `tell` and wait.

    A folder that was made for this and is still empty when an error ends it goes again.
    """
    path, new = folder / LOCK_FILE, not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise TiebreakError(f"{path}: {error.strerror}; give a folder that can be written with --out") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another tiebreak works in {folder}; waiting until it has finished")
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        except BaseException:
            if new and list(folder.iterdir()) == [path]:  # nothing came of it
                path.unlink()
                folder.rmdir()
            raise

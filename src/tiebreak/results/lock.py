"""One writer per results folder: a lock that the operating system releases when its holder dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tiebreak.errors import TiebreakError
from tiebreak.files import failure, inside

LOCK_FILE = ".lock"


@contextmanager
def locked(folder: Path, notify: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder, which is created if needed. If another process holds it, say so through `notify` and wait.

    A folder that was created here and is still empty when an error occurs is removed again, with the folders above it
    that were created for it.
    """
    if folder.exists() and not folder.is_dir():
        raise TiebreakError(f"{folder}: a file, not a folder; give a results folder with --out")
    path, made = folder / LOCK_FILE, [each for each in (folder, *folder.parents) if not each.exists()]
    lock = FileLock(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_lock(folder)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            notify(f"another tiebreak works in {folder}; waiting until it has finished")
            lock.acquire()
    except OSError as error:
        raise failure(path, "cannot be written", error, "give a folder that can be written with --out") from None
    try:
        yield
    except BaseException:
        if made and folder.is_dir() and list(folder.iterdir()) == [path]:
            path.unlink()
            for each in made:
                if any(each.iterdir()):
                    break
                each.rmdir()
        raise
    finally:
        lock.release()


def _check_lock(folder: Path) -> None:
    """Raise unless the lock is absent or an empty file of its own: opening it for writing must not harm any other."""
    path = inside(folder, LOCK_FILE)
    if path.exists() and path.stat().st_size:
        raise TiebreakError(f"{path}: not a lock of Tiebreak, it has content; move it away, or give another --out")

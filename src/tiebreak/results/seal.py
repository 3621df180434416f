"""The sha256 of the whole store while no writer works in the folder: it covers the bytes that hold no row too.

`records.sha256` is written when a command has closed the store and removed when the next writer opens it, so that a
killed study has none. `sha256sum -c` reads it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tiebreak import files
from tiebreak.results.connection import connect, log_of, readable

SEAL_FILE = "records.sha256"
TRIES, PAUSE = 20, 0.05  # seconds: for readers that have the store open


def seal(store: Path) -> None:
    """Write the seal of a closed store; not while another process has it open.

    A reader has it open for a moment (`tiebreak watch`, `status`), and the log then stays: it is closed once more.
    """
    for _ in range(TRIES):
        if not log_of(store).exists():
            files.write(store.parent / SEAL_FILE, _seal(store))
            return
        with readable(store), closing(connect(store)) as last:
            last.execute("SELECT count(*) FROM sqlite_master").fetchone()
        time.sleep(PAUSE)


def unseal(store: Path) -> None:
    """Remove the seal, before the store is changed."""
    try:
        (store.parent / SEAL_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise files.failure(store.parent, "cannot be written", error) from None


def is_sealed(store: Path) -> bool:
    """Whether the last command closed the store and no other has opened it since."""
    return (store.parent / SEAL_FILE).is_file()


@contextmanager
def sealed_on_error(store: Path, *, when: bool) -> Iterator[None]:
    """Seal the store again when an error ends a command before it has trained anything."""
    try:
        yield
    except Exception:
        if when:
            seal(store)
        raise


def seal_problem(store: Path) -> str:
    """What a seal says against the store; empty where it says nothing, or there is none."""
    path = store.parent / SEAL_FILE
    stored = _read(path)
    if stored is None or stored == _seal(store).encode() or stored != _read(path):  # the last: a writer came meanwhile
        return ""
    return f"{store}: damaged, or {SEAL_FILE} is: its sha256 is not the recorded one"


def _seal(store: Path) -> str:
    with store.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {store.name}\n"


def _read(path: Path) -> bytes | None:
    files.inside(path.parent, path.name)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None

"""Checksums of files, each computed once per command: the driver's are passed on to its workers.

A file is read again when its stamp differs from the one it was hashed with. The stamp holds the time of the last change
of the inode (ctime), which programs that restore the time of modification cannot set back. A file that was modified
less than FRESH_SECONDS before it was hashed is always read again: it may change within the resolution of its clock.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError

FRESH_SECONDS = 2.0  # the coarsest clock of a file system in use

Stamp = tuple[int, ...]  # device, inode, size, time of modification, time of change

_known: dict[tuple[str, str], tuple[Stamp, str]] = {}  # (path, algorithm) -> stamp, checksum


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file's bytes, in hexadecimal digits."""
    key = str(path.absolute()), algorithm
    try:
        if key in _known and _known[key][0] == _stamp(path.stat()):
            return _known[key][1]
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise TiebreakError(f"{path}: cannot be read: {error.strerror}") from None
    if time.time() - before.st_mtime > FRESH_SECONDS:
        _known[key] = _stamp(before), found
    return found


def save_checksums(path: Path) -> None:
    """Write what this process has hashed, for other processes of the same command."""
    files.write(path, json.dumps([[*key, *known] for key, known in _known.items()]))


def load_checksums(path: Path) -> None:
    """Take over what another process has hashed. Without the file, everything is hashed again."""
    if path.is_file():
        for name, algorithm, stamp, found in json.loads(files.read_text(path)):
            _known[name, algorithm] = tuple(stamp), found


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

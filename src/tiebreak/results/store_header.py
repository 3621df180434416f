"""The header of SQLite's file format, for a store that is damaged there: https://www.sqlite.org/fileformat.html."""

from __future__ import annotations

import shutil
from pathlib import Path

from tiebreak.results.connection import log_of
from tiebreak.results.migration import APPLICATION, SCHEMA_VERSION

PAGE = 4096  # SQLite's default, which every store has
FIXED = {  # offset -> the bytes that every store of ours has there
    0: b"SQLite format 3\0",
    16: PAGE.to_bytes(2, "big"),
    18: bytes([2, 2, 0, 64, 32, 32]),  # write-ahead log, no reserved space, payload fractions
    44: (4).to_bytes(4, "big"),  # schema format
    52: bytes(4),  # no auto-vacuum
    56: (1).to_bytes(4, "big"),  # UTF-8
    64: bytes(4),  # no incremental vacuum
}


def repair_header(store: Path, copy: Path) -> Path:
    """A copy of the store (and of its log) whose header holds what a store of ours has. The copy is for reading."""
    content = bytearray(store.read_bytes())
    for offset, value in FIXED.items():
        if len(content) > offset + len(value):
            content[offset : offset + len(value)] = value
    if len(content) >= PAGE:
        content[28:32] = (len(content) // PAGE).to_bytes(4, "big")
        content[92:96] = content[24:28]  # the size is that of this content
        content[60:64] = SCHEMA_VERSION.to_bytes(4, "big")
        content[68:72] = (APPLICATION + SCHEMA_VERSION).to_bytes(4, "big")
    copy.write_bytes(content)
    if log_of(store).is_file():
        shutil.copyfile(log_of(store), log_of(copy))
    return copy

"""Damage of SQLite's write-ahead log, which a killed run leaves beside the store.

SQLite takes a damaged frame for the end of the log and forgets every transaction behind it without a word; closing the
store then removes the log. Format and checksum: https://www.sqlite.org/fileformat.html#the_write_ahead_log.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

HEADER, FRAME = 32, 24  # bytes of the log's and of a frame's header
PAGE = (512, 65536)  # bytes of a page: the smallest and the largest
MASK = 0xFFFFFFFF


def log_problem(log: Path) -> str:
    """Whether committed transactions of the log are lost, in one line that names it; empty if none are."""
    if _intact(log) or _intact(log):  # twice: a running study may write to it
        return ""
    return f"{log}: damaged: the transactions behind the damage are lost"


def _intact(log: Path) -> bool:
    try:
        with log.open("rb") as file:
            return _read(file)
    except FileNotFoundError:
        return True


def _read(file: BinaryIO) -> bool:
    """Whether every transaction in the log can be read. One frame is in memory at a time."""
    header = file.read(HEADER)
    if len(header) < HEADER or os.fstat(file.fileno()).st_size < HEADER + FRAME:
        return True  # no transaction
    order = ">" if header[3] & 1 else "<"
    size, salts = int.from_bytes(header[8:12], "big"), header[16:24]
    sums = _checksum(header[:24], order, (0, 0))
    if sums != struct.unpack(">II", header[24:32]) or not PAGE[0] <= size <= PAGE[1]:
        return False
    valid = True
    while len(frame := file.read(FRAME + size)) == FRAME + size:
        if valid and frame[8:16] == salts:
            sums = _checksum(frame[:8] + frame[FRAME:], order, sums)
            valid = sums == struct.unpack(">II", frame[16:24])
        else:
            valid = False
        if not valid and frame[8:16] == salts and any(frame[4:8]):
            return False  # it ends a transaction of this log; frames of an earlier use have other salts
    return True


def _checksum(content: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & MASK
        second = (second + two + first) & MASK
    return first, second

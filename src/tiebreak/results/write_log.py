"""Damage of SQLite's write-ahead log, which a killed run leaves beside the store.

SQLite takes a damaged frame for the end of the log and forgets every transaction behind it without a word; closing the
store then removes the log. Format and checksum: https://www.sqlite.org/fileformat.html#the_write_ahead_log.
"""

from __future__ import annotations

import struct
from pathlib import Path

HEADER, FRAME = 32, 24  # bytes of the log's and of a frame's header
MASK = 0xFFFFFFFF


def log_problem(log: Path) -> str:
    """Whether committed transactions of the log are lost, in one line that names it; empty if none are."""
    if _intact(_read(log)) or _intact(_read(log)):  # twice: a running study may write to it
        return ""
    return f"{log}: damaged: the transactions behind the damage are lost"


def _read(log: Path) -> bytes:
    try:
        return log.read_bytes()
    except FileNotFoundError:
        return b""


def _intact(content: bytes) -> bool:
    if len(content) < HEADER + FRAME:
        return True  # no transaction
    order = ">" if content[3] & 1 else "<"
    size, salts = int.from_bytes(content[8:12], "big"), content[16:24]
    sums = _checksum(content[:24], order, (0, 0))
    if sums != struct.unpack(">II", content[24:32]) or size < 512:
        return False
    frames = range(HEADER, len(content) - FRAME - size + 1, FRAME + size)
    for start in frames:
        frame = content[start : start + FRAME + size]
        if frame[8:16] != salts:
            return not _commits(content, range(start, frames.stop, frames.step), salts)
        sums = _checksum(frame[:8] + frame[FRAME:], order, sums)
        if sums != struct.unpack(">II", frame[16:24]):
            return not _commits(content, range(start, frames.stop, frames.step), salts)
    return True


def _commits(content: bytes, frames: range, salts: bytes) -> bool:
    """Whether one of these frames ends a transaction of this log; frames of an earlier use have other salts."""
    return any(content[at + 8 : at + 16] == salts and any(content[at + 4 : at + 8]) for at in frames)


def _checksum(content: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & MASK
        second = (second + two + first) & MASK
    return first, second

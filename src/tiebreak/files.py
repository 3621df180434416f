"""Files read with one clear line on failure; files written whole or not at all: beside, synced, renamed."""

from __future__ import annotations

import gzip
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.text import printable

LIMIT_BYTES = 256 << 20  # of one file, unpacked


def is_file(path: Path) -> bool:
    """Whether there is such a file; one clear line where its folder may not be entered."""
    try:
        return path.is_file()
    except OSError as error:
        raise TiebreakError(f"{printable(path)}: cannot be opened: {error.strerror}") from None


def read_bytes(path: Path, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a file; one whose name ends in .gz is unpacked. More than `limit` bytes are refused."""
    where = printable(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TiebreakError(f"{where}: damaged gzip file ({error}); get the file again") from None
    except OSError as error:
        raise TiebreakError(f"{where}: {error.strerror or error}") from None
    if len(content) > limit:
        raise TiebreakError(f"{where}: larger than the limit of {limit:,} bytes; use a part of it")
    return content


def read_text(path: Path, limit: int = LIMIT_BYTES) -> str:
    """The text of a file: UTF-8 with or without a byte order mark, plain or gzipped. CR LF and CR become line feeds."""
    content = read_bytes(path, limit)
    if (place := content.find(b"\0")) >= 0:
        raise TiebreakError(f"{_at(path, content, place)}: a NUL byte: not UTF-8 text; save the file as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = _at(path, content, error.start)
        raise TiebreakError(f"{where}: not UTF-8 text (byte {error.start}); save the file as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _at(path: Path, content: bytes, place: int) -> str:
    """The file and the line that holds a byte, for a message."""
    line = content.count(b"\n", 0, place) + 1
    return f"{printable(path)}: line {line}"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`: it replaces `path` when the block succeeds and is removed when it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(path)
        _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, content: str | bytes) -> Path:
    """Write `content` to `path`; on failure one clear line, and the previous file is still there."""
    try:
        with replacing(path) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise TiebreakError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def _sync(folder: Path) -> None:
    """Make the rename survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

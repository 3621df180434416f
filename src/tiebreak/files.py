"""Files read with one clear line on failure; files written whole or not at all: beside, synced, renamed.

`inside` decides whether a name that was read from a file (a store, a plan, a list of recordings) stays in its folder.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.system import sync_folder
from tiebreak.text import printable

LIMIT_BYTES = 256 << 20  # of one file, unpacked
PIECE = 1 << 20  # characters
ADVICE = {  # by the cause of a failure; what else can be done is said by the caller
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "your disk quota is used up: make room, or ask for more",
    errno.EFBIG: "files may not be that large here: raise the limit (ulimit -f)",
    errno.ENAMETOOLONG: "the path is too long: use a shorter one",
    errno.EACCES: "you may not: change the permissions",
    errno.EPERM: "you may not: change the permissions",
    errno.EROFS: "the file system is read-only",
}


def inside(folder: Path, *names: str, links: bool = False) -> Path:
    """The path of a file in `folder` by names that a file gave: those of its subfolders, then its own.

    Each name is one component. Nothing on the way below `folder` may be a symbolic link, unless `links` allows it, and
    the last must be a regular file if it exists: TiebreakError otherwise.
    """
    path = folder
    for name in names:
        if name in ("", ".", "..") or any(letter in name for letter in "/\\\0"):
            raise TiebreakError(f"{printable(folder)}: {printable(name)!r} is not the name of a file in this folder")
        path = path / name
        if not links and _is_link(path):
            raise TiebreakError(f"{printable(path)}: a symbolic link, which is not followed here; put the file there")
    check_regular(path)
    return path


def subfolder(folder: Path, *names: str) -> Path:
    """A folder in `folder` to write into, by our own names. A link on the way would lead elsewhere: TiebreakError."""
    path = folder
    for name in names:
        path = path / name
        if _is_link(path):
            raise TiebreakError(f"{printable(path)}: a symbolic link, which is not followed here; remove it")
    return path


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError as error:  # such as a name that is too long
        raise failure(path, "cannot be opened", error) from None
    except ValueError:  # a name that cannot be encoded
        raise TiebreakError(f"{printable(path)}: not a path that the system knows") from None


def check_regular(path: Path) -> None:
    """Raise TiebreakError where there is a folder, a pipe or a device: reading one may never end."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except ValueError:
        raise TiebreakError(f"{printable(path)}: a NUL byte in the path, or what cannot be encoded") from None
    except OSError as error:
        raise failure(path, "cannot be opened", error) from None
    if not stat.S_ISREG(mode):
        kind = "Is a directory" if stat.S_ISDIR(mode) else "not a regular file; save it as one"
        raise TiebreakError(f"{printable(path)}: {kind}")


def failure(path: Path, what: str, error: OSError, otherwise: str = "") -> TiebreakError:
    """The one line for a failed operation: what could not be done, why, and advice that fits the cause.

    `otherwise` is the advice for causes without their own.
    """
    advice = ADVICE.get(error.errno or 0, otherwise)
    parts = [printable(path), what, str(error.strerror or error)]
    return TiebreakError(": ".join(filter(None, parts)) + (f"; {advice}" if advice else ""))


def is_file(path: Path) -> bool:
    """Whether there is such a file; one clear line where its folder may not be entered."""
    try:
        return path.is_file()
    except OSError as error:
        raise failure(path, "cannot be opened", error) from None


def read_bytes(path: Path, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a file; one whose name ends in .gz is unpacked. More than `limit` bytes are refused."""
    where = printable(path)
    check_regular(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TiebreakError(f"{where}: damaged gzip file ({error}); get the file again") from None
    except OSError as error:
        raise failure(path, "", error) from None
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


def read_pieces(path: Path, limit: int = LIMIT_BYTES, size: int = PIECE) -> Iterator[str]:
    """The text that `read_text` reads, in pieces of `size` characters: a large file is never whole in memory."""
    check_regular(path)
    count = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = io.TextIOWrapper(io.BufferedReader(file), encoding="utf-8-sig", newline=None)
            while (piece := text.read(size)) and "\0" not in piece and count <= limit:
                count += len(piece) if piece.isascii() else len(piece.encode())
                yield piece
            whole = not piece
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        whole = False
    if not whole:
        read_text(path, limit)  # says what is wrong, and where


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
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Make the folder of a file that long work will end with, and refuse a place where it could not be written."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        part.touch()
        part.unlink()
    except OSError as error:
        raise failure(path, "cannot be written", error) from None


def write(path: Path, content: str | bytes) -> Path:
    """Write `content` to `path`; on failure one clear line, and the previous file is still there."""
    try:
        with replacing(path) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise failure(path, "cannot be written", error) from None
    return path

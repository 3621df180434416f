"""Files of sentence pairs that nobody vouches for: two sentences a line, a tab between; further columns are left alone.

Files are UTF-8, plain or gzipped, lines end in \\n or \\r\\n. Nothing is taken on trust: what a file unpacks to and how
long a line is are limited, and an error names the file and the line.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.text import printable

LIMIT_BYTES = 256 << 20  # of the text of one file
LIMIT_LINE = 10_000  # characters
FORM = "expected UTF-8 lines of source TAB target"

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLines:
    """The two first columns of every line that is not blank, and how many are."""

    pairs: list[Pair]
    blank: int


def read_pairs(path: Path, limit: int = LIMIT_BYTES) -> PairLines:
    """The pairs of a file, as they are written there; one whose name ends in .gz is unpacked."""
    where = printable(path)
    content = _read(path, limit)
    if (zero := content.find(b"\0")) >= 0:
        raise TiebreakError(f"{where}:{_line(content, zero)}: a NUL byte, so this is not text; {FORM}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TiebreakError(f"{where}:{_line(content, error.start)}: not UTF-8 text; save the file as UTF-8") from None
    pairs, blank = [], 0
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        if len(line) > LIMIT_LINE:
            raise TiebreakError(
                f"{where}:{number}: a line of {len(line):,} characters, at most {LIMIT_LINE:,} are read; {FORM}"
            )
        if not line.strip():
            blank += 1
            continue
        columns = line.removesuffix("\r").split("\t", 2)
        if len(columns) < 2:
            raise TiebreakError(f"{where}:{number}: no tab in this line; {FORM}")
        pairs.append((columns[0], columns[1]))
    if not pairs:
        raise TiebreakError(f"{where}: empty: no sentence pair in it; {FORM}")
    return PairLines(pairs=pairs, blank=blank)


def _read(path: Path, limit: int) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TiebreakError(f"{printable(path)}: damaged ({error}); get the file again") from None
    except OSError as error:
        raise TiebreakError(f"{printable(path)}: cannot be read: {error.strerror or error}") from None
    if len(content) > limit:
        raise TiebreakError(f"{printable(path)}: more than {limit:,} bytes of text; at most that many are read")
    return content


def _line(content: bytes, place: int) -> int:
    return content.count(b"\n", 0, place) + 1

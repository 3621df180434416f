"""Files of sentence pairs: two sentences a line, separated by a tab; further columns are ignored.

Files are text as `files.read_text` reads it, plain or gzipped. The length of a line is limited, and an error names the
file and the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.files import LIMIT_BYTES, read_text
from tiebreak.text import printable

LIMIT_LINE = 10_000  # characters
LIMIT_PAIRS = 3_000_000
FORM = "expected UTF-8 lines of source TAB target"

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLines:
    """The first two columns of every line that is not blank, and how many lines are blank or have further columns."""

    pairs: list[Pair]
    blank: int
    longer: int = 0


def read_pairs(path: Path, limit: int = LIMIT_BYTES, columns: int = 2) -> PairLines:
    """The pairs of a file, as they are written there. Lines with more than `columns` columns are counted as longer."""
    where = printable(path)
    pairs, blank, longer = [], 0, 0
    for number, line in enumerate(read_text(path, limit).removesuffix("\n").split("\n"), start=1):
        if len(line) > LIMIT_LINE:
            raise TiebreakError(
                f"{where}: line {number}: {len(line):,} characters; at most {LIMIT_LINE:,} are read; {FORM}"
            )
        if not line.strip():
            blank += 1
            continue
        parts = line.split("\t", columns)
        if len(parts) < 2:
            raise TiebreakError(f"{where}: line {number}: no tab in this line; {FORM}")
        pairs.append((parts[0], parts[1]))
        longer += len(parts) > columns
        if len(pairs) > LIMIT_PAIRS:
            raise TiebreakError(f"{where}: more than {LIMIT_PAIRS:,} pairs; use a part of it")
    if not pairs:
        raise TiebreakError(f"{where}: empty: no sentence pair; {FORM}")
    return PairLines(pairs=pairs, blank=blank, longer=longer)

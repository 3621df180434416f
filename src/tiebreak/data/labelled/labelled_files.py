"""CSV files of texts with labels: UTF-8 with a header line that has the columns text and label.

A column split (train, val or test) is optional; further columns are left out. Quotes are those of RFC 4180, so that a
text may hold commas and line breaks. An error names the file and the line.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import LIMIT_BYTES, read_text
from tiebreak.text import printable

LIMIT_TEXT = 1_000_000  # characters
LIMIT_ROWS = 3_000_000
FORM = "expected a CSV file with a header line that has the columns text and label, such as `text,label`"
COLUMNS = ("text", "label", "split")
TABLE = "a table of numbers is for a task of your own: `tiebreak new NAME --own-task` (docs/own-task.md)"
OF_SCORES = {"arm", "seed", "score"}  # columns of a table of results


class Labelled(NamedTuple):
    """One row. `split` is empty where the file has no such column."""

    text: str
    label: str
    split: str = ""


def read_labelled(path: Path, limit: int = LIMIT_BYTES) -> list[Labelled]:
    """The rows of a file, stripped of white space around text and label."""
    where = printable(path)
    csv.field_size_limit(LIMIT_TEXT)
    reader = csv.DictReader(io.StringIO(read_text(path, limit), newline=""), strict=True)
    rows: list[Labelled] = []
    try:
        columns = [name.strip().lower() for name in reader.fieldnames or ()]
        _check_columns(where, columns)
        reader.fieldnames = columns
        for row in reader:
            rows.append(_row(where, reader.line_num, row))
            if len(rows) > LIMIT_ROWS:
                raise TiebreakError(f"{where}: more than {LIMIT_ROWS:,} rows; use a part of it")
    except csv.Error as error:
        raise TiebreakError(f"{where}: line {reader.line_num}: {error}; {FORM}") from None
    if not rows:
        raise TiebreakError(f"{where}: no rows; {FORM}")
    with_split = sum(bool(row.split) for row in rows)
    if with_split not in (0, len(rows)):
        raise TiebreakError(f"{where}: {len(rows) - with_split:,} rows without a split; give one to all, or to none")
    return rows


def _check_columns(where: str, columns: list[str]) -> None:
    for name in ("text", "label"):
        if columns.count(name) != 1:
            what = f"{columns.count(name)} columns" if name in columns else "no column"
            found = ", ".join(map(printable, columns)) or "an empty line"
            other = TABLE if name == "text" and not columns.count(name) and len(columns) > 1 else ""
            other = "scores of runs are for `tiebreak compare`" if OF_SCORES & set(columns) else other
            hint = f"; {other}" if other else ""
            raise TiebreakError(f"{where}: line 1: {what} {name!r}; expected text, label; found {found}{hint}")


def further_columns(path: Path) -> list[str]:
    """The names of the columns that are not read."""
    header = next(csv.reader(io.StringIO(read_text(path), newline="")), [])
    return [printable(name.strip()) for name in header if name.strip().lower() not in COLUMNS]


def _row(where: str, line: int, row: dict[str, str | None]) -> Labelled:
    found = Labelled(*((row.get(name) or "").strip() for name in ("text", "label", "split")))
    for name in ("text", "label"):
        if not getattr(found, name):
            raise TiebreakError(f"{where}: line {line}: an empty {name}; fill it in or remove the row")
    if found.split and found.split not in SPLITS:
        raise TiebreakError(
            f"{where}: line {line}: unknown split {printable(found.split)!r}; {nearest(found.split, SPLITS)}"
        )
    return found


def is_labelled(path: Path) -> bool:
    """Whether a file begins with a header line that has the columns text and label."""
    with path.open("rb") as file:
        header = file.readline(10_000).decode("utf-8-sig", errors="replace")
    return {"text", "label"} <= {name.strip().strip('"').lower() for name in header.split(",")}

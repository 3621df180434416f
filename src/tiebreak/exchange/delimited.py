"""CSV files: long (a line for each run) or wide (a column for each arm), commas, the first line names the columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.run_table import LIMIT_BYTES, MOST_COLUMNS, Row, Table
from tiebreak.files import read_bytes


def read_csv(path: Path) -> Table:
    """The table of a CSV file. Rows are read one by one; lines without content are passed over."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise TiebreakError(f"{path}, line 1: not valid CSV ({error}); check the quotes") from None
    if len(header) == 1 and re.search(r"[;\t]", header[0]):
        raise TiebreakError(f"{path}, line 1: the columns are not separated by commas; save the file with commas")
    if len(header) > MOST_COLUMNS:
        raise TiebreakError(f"{path}, line 1: {len(header):,} columns, more than {MOST_COLUMNS:,}; remove some")
    return Table(where=path, columns=header, rows=_rows(path, reader, len(header)))


def _rows(path: Path, reader: Any, width: int) -> Iterator[Row]:
    try:
        for row in reader:
            if any(cell and not cell.isspace() for cell in row):
                if len(row) != width and (len(row) < width or any(cell.strip() for cell in row[width:])):
                    where = f"{path}, line {reader.line_num}"
                    raise TiebreakError(f"{where}: {len(row)} cells where the header has {width}; complete it")
                yield reader.line_num, row
    except csv.Error as error:
        raise TiebreakError(f"{path}, line {reader.line_num}: not valid CSV ({error}); check the quotes") from None


def _text(path: Path) -> str:
    try:
        text = read_bytes(path, LIMIT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TiebreakError(f"{path}: not UTF-8 text (byte {error.start}); save it as CSV in UTF-8") from None
    if not text.strip():
        raise TiebreakError(f"{path}: the file is empty; it should have the columns arm, seed, score")
    return text

"""Parquet files, read by pyarrow (an extra)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.extras import require
from tiebreak.exchange.run_table import Table
from tiebreak.files import LIMIT_BYTES, check_regular

MOST_CELLS = 10_000_000


def read_parquet(path: Path) -> Table:
    """The table of a Parquet file: its columns of numbers and texts.

    Equal texts stay one text, as in the file: a small file may hold a long text in each of millions of rows.
    """
    arrow = require("pyarrow.parquet", "parquet", f"{path}: reading Parquet")
    check_regular(path)
    try:
        file = arrow.ParquetFile(path)
        size = file.metadata.num_rows * file.metadata.num_columns
        if size > MOST_CELLS:  # said by the file's directory: nothing is unpacked before this
            raise TiebreakError(f"{path}: {size:,} cells, more than {MOST_CELLS:,}; save fewer columns")
        groups = range(file.metadata.num_row_groups)
        if (unpacked := sum(file.metadata.row_group(group).total_byte_size for group in groups)) > LIMIT_BYTES:
            raise TiebreakError(f"{path}: {unpacked:,} bytes unpacked, more than {LIMIT_BYTES:,}; save fewer columns")
        names = [field.name for field in file.schema_arrow if _is_plain(str(field.type))]
        texts = [field.name for field in file.schema_arrow if field.name in names and "string" in str(field.type)]
        content = arrow.ParquetFile(path, read_dictionary=texts).read(columns=names)
    except (OSError, ValueError, MemoryError) as error:
        if isinstance(error, TiebreakError):
            raise
        raise TiebreakError(f"{path}: not a Parquet file that can be read ({' '.join(str(error).split())})") from None
    columns = [_values(content.column(name)) for name in names]
    rows = ((f"row {number}", cells) for number, cells in enumerate(zip(*columns, strict=True), 1))
    return Table(where=path, columns=names, rows=rows)


def _values(column: Any) -> list[Any]:
    """The cells of a column."""
    found = list[Any]()
    for chunk in column.chunks:
        if str(chunk.type).startswith("dictionary"):
            known = [*chunk.dictionary.to_pylist(), None]
            found += [known[-1 if place is None else place] for place in chunk.indices.to_pylist()]
        else:
            found += chunk.to_pylist()
    return found


def _is_plain(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float", "double", "half", "string", "large_string", "bool", "dictionary"))

"""Parquet files, read by pyarrow (an extra)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.extras import require
from tiebreak.exchange.run_table import Table
from tiebreak.files import check_regular

MOST_CELLS = 50_000_000


def read_parquet(path: Path) -> Table:
    """The table of a Parquet file: its columns of numbers and texts."""
    arrow = require("pyarrow.parquet", "parquet", f"{path}: reading Parquet")
    check_regular(path)
    try:
        file = arrow.ParquetFile(path)
        size = file.metadata.num_rows * file.metadata.num_columns
        if size > MOST_CELLS:  # said by the file's directory: nothing is unpacked before this
            raise TiebreakError(f"{path}: {size:,} cells, more than {MOST_CELLS:,}; save fewer columns")
        names = [field.name for field in file.schema_arrow if _is_plain(str(field.type))]
        content = file.read(columns=names)
    except (OSError, ValueError, MemoryError) as error:
        if isinstance(error, TiebreakError):
            raise
        raise TiebreakError(f"{path}: not a Parquet file that can be read ({' '.join(str(error).split())})") from None
    columns: list[list[Any]] = [content.column(name).to_pylist() for name in names]
    rows = ((f"row {number}", cells) for number, cells in enumerate(zip(*columns, strict=True), 1))
    return Table(where=path, columns=names, rows=rows)


def _is_plain(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float", "double", "half", "string", "large_string", "bool", "dictionary"))

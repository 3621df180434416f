"""JSON lines (an object a line), or a JSON file with a list of objects: a run each, nested keys joined by dots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.run_table import LIMIT_BYTES, MOST_COLUMNS, Table, flat
from tiebreak.files import read_text


def read_json_lines(path: Path) -> Table:
    """The table of a file of JSON objects."""
    text = read_text(path, LIMIT_BYTES)
    if not text.strip():
        raise TiebreakError(f"{path}: the file is empty; it should hold a JSON object a line")
    if text.lstrip().startswith("["):
        listed = parse(text, str(path))
        numbered = list(enumerate(listed if isinstance(listed, list) else [], 1))
        places: Sequence[int | str] = [f"object {number}" for number, _ in numbered]
        objects = [content for _, content in numbered]
    else:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        places = [number for number, _ in lines]
        objects = [parse(line, f"{path}, line {number}") for number, line in lines]
    rows = []
    for place, content in zip(places, objects, strict=True):
        if not isinstance(content, Mapping):
            where = f"line {place}" if isinstance(place, int) else place
            raise TiebreakError(
                f'{path}, {where}: not a JSON object; write it like {{"arm": "a", "seed": 0, "score": 0.9}}'
            )
        rows.append(flat(content))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if len(columns) > MOST_COLUMNS:
        raise TiebreakError(f"{path}: {len(columns):,} keys, more than {MOST_COLUMNS:,}; leave some out")
    cells = ([row.get(column) for column in columns] for row in rows)
    return Table(where=path, columns=columns, rows=zip(places, cells, strict=True))


def parse(text: str, where: str) -> Any:
    """JSON, or one line that says where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise TiebreakError(f"{where}: not valid JSON ({reason})") from None

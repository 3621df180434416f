"""A table of runs as every reader returns it: named columns, a row for each run. No torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.text import printable

Cell = str | int | float | None
Row = tuple[int | str, Sequence[Cell]]  # where it stands (a line, the name of a run), and its cells

NAME = "run"  # the usual column for the name or folder of a run
LIMIT_BYTES = 64 << 20  # of a file: two million lines
MOST_COLUMNS = 10_000
MOST_FILES = 100_000  # below a folder


@dataclass(frozen=True, kw_only=True)
class Table:
    """Runs and what is known of them. `rows` can be read once; `notes` may grow while they are."""

    where: Path
    columns: Sequence[str]
    rows: Iterable[Row]
    metrics: Sequence[str] = ()  # columns that hold scores, where the source tells them from parameters
    defaults: Mapping[str, str] = field(default_factory=dict)  # the column of "arm", "seed", "score", "dataset"
    named: str | None = None  # the column with the names or folders of runs, which may say arm and seed
    notes: list[str] = field(default_factory=list)

    def at(self, place: int | str) -> str:
        """A place of the table, for a message."""
        return f"{printable(self.where)}, {f'line {place}' if isinstance(place, int) else place}"


def from_runs(
    where: Path, runs: Sequence[tuple[str, Mapping[str, Cell]]], metrics: Iterable[str], **more: Any
) -> Table:
    """A table of runs that have parameters and scores by name; what a run does not have is None."""
    columns = list(dict.fromkeys([NAME, *(key for _, values in runs for key in values)]))
    rows = [(f"run {name!r}", [values.get(column, name if column == NAME else None) for column in columns])
            for name, values in runs]  # fmt: skip
    held = set(metrics)
    return Table(
        where=where, columns=columns, rows=rows, metrics=[name for name in columns if name in held], named=NAME, **more
    )


def flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Cell]:
    """The numbers and texts of nested JSON objects, keys joined by dots; lists are left out."""
    found: dict[str, Cell] = {}
    stack = [(prefix, content)]
    while stack:
        above, items = stack.pop()
        for key, value in items.items():
            name = f"{above}{key}"
            if isinstance(value, Mapping):
                stack.append((f"{name}.", value))
            elif value is None or isinstance(value, str | int | float):
                found[name] = value
    return found


def walk(folder: Path, *, depth: int = 12) -> Iterator[Path]:
    """Every regular file below a folder, in order of the names; links and hidden folders are not followed."""
    count = 0
    for root, folders, names in os.walk(folder):
        above = Path(root)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(above.relative_to(folder).parts) >= depth:
            folders.clear()
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                raise TiebreakError(f"{printable(folder)}: more than {MOST_FILES:,} files; give a folder inside it")
            path = above / name
            if path.is_file() and not path.is_symlink():
                yield path

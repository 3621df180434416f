"""CSV files of Weights & Biases: its table of runs, the values of a chart, or what its guide writes with pandas."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.delimited import read_csv
from tiebreak.exchange.run_table import Cell, Row, Table, flat, from_runs
from tiebreak.text import printable

RUN, STATE = "Name", "State"
PUBLIC_API = {"summary", "config", "name"}
MARKS = {"State", "Runtime", "Created", "User", "Sweep", "Tags", "Notes", "ID", "Start Time", "Relative Time (Process)"}
CHART = re.compile(r"(?P<run>.+) - (?P<metric>.+?)(?P<extreme>__MIN|__MAX)?")


def is_export(columns: Sequence[str]) -> bool:
    """Whether the header is one that W&B writes."""
    runs = RUN in columns and bool(MARKS & set(columns))
    return runs or _is_chart(columns) or set(columns) >= PUBLIC_API


def _is_chart(columns: Sequence[str]) -> bool:
    """Whether the header is a chart's. The first column is its x axis: steps, or any metric that was chosen for it."""
    named = set(columns)
    return any(
        columns[0] in ("Step", "_step") or {f"{columns[place]}__MIN", f"{columns[place]}__MAX"} <= named
        for place in _chart_columns(columns)
    )


def read_wandb(path: Path) -> Table:
    """The runs of an export; those that crashed, failed, were killed or still run are left out, and a note says so."""
    table = read_csv(path)
    if RUN in table.columns:
        return Table(where=path, columns=table.columns, rows=_finished(table), named=RUN, notes=table.notes)
    if set(table.columns) >= PUBLIC_API:
        return _of_dicts(table)
    if not _chart_columns(table.columns):
        raise TiebreakError(
            f"{path}, line 1: neither W&B's table of runs (a column {RUN}) nor a chart ('RUN - METRIC')"
        )
    return _chart(table)


def _of_dicts(table: Table) -> Table:
    """The runs of a table with a dict in each cell of `summary` and `config`: keys are joined by dots."""
    place = {name: table.columns.index(name) for name in PUBLIC_API}
    runs = []
    for line, cells in table.rows:
        own = {name: _dict(cells[place[name]], f"{table.at(line)}: {name}") for name in ("config", "summary")}
        runs.append((str(cells[place["name"]]), flat(own)))
    metrics = [key for _, own in runs for key in own if key.startswith("summary.") and not key.startswith("summary._")]
    seeds = {"seed": "config.seed"} if any("config.seed" in own for _, own in runs) else {}
    return from_runs(table.where, runs, metrics, defaults=seeds, notes=table.notes)


def _dict(cell: Cell, where: str) -> Mapping[str, Any]:
    """A dict as Python prints it. What is no number there (nan, inf) is not known."""
    try:
        found = ast.literal_eval(_NotKnown().visit(ast.parse(str(cell).strip(), mode="eval")))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TiebreakError(f"{where}: should be a dict such as {{'accuracy': 0.9}}, not {printable(str(cell)[:40])!r}")
    return {str(key): value for key, value in found.items()}


class _NotKnown(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        """None in the place of `nan` and `inf`."""
        return ast.Constant(None) if node.id in ("nan", "inf") else node


def _finished(table: Table) -> Iterator[Row]:
    state = table.columns.index(STATE) if STATE in table.columns else None
    others: Counter[str] = Counter()
    for place, cells in table.rows:
        found = "finished" if state is None else str(cells[state]).strip().lower()
        if found in ("finished", ""):
            yield place, cells
        else:
            others[found] += 1
    if others:
        counts = ", ".join(f"{many} {what}" for what, many in others.items())
        table.notes.append(f"left out, as W&B says that they did not finish: {counts}")


def _chart_columns(columns: Sequence[str]) -> dict[int, tuple[str, str]]:
    """The columns of a chart: the run and the metric of each, without the smallest and largest values of a step."""
    matches = {place: CHART.fullmatch(name) for place, name in enumerate(columns)}
    return {
        place: (found["run"], found["metric"]) for place, found in matches.items() if found and not found["extreme"]
    }


def _chart(table: Table) -> Table:
    """The last value of every run of a chart."""
    columns, last = _chart_columns(table.columns), dict[int, Cell]()
    for _, cells in table.rows:
        last.update({place: cells[place] for place in columns if str(cells[place]).strip()})
    runs: dict[tuple[str, int], dict[str, Cell]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for place, (run, metric) in columns.items():
        which = seen[run, metric]  # several runs may have the same name
        seen[run, metric] += 1
        runs.setdefault((run, which), {})[metric] = last.get(place)
    notes = ["the score of a run is the last value of its curve"]
    metrics = [metric for _, metric in columns.values() if not metric.startswith("_")]  # such as _step: W&B's own
    return from_runs(table.where, [(run, own) for (run, _), own in runs.items()], metrics, notes=notes)

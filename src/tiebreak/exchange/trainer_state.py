"""Folders with trainer_state.json, as Hugging Face's Trainer writes them: a run for each folder of checkpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.json_lines import parse
from tiebreak.exchange.run_table import LIMIT_BYTES, Cell, Table, flat, from_runs, walk
from tiebreak.files import read_text
from tiebreak.text import printable

STATE = "trainer_state.json"
RESULTS = ("all_results.json", "eval_results.json", "test_results.json", "predict_results.json")
CHECKPOINT = re.compile(r"checkpoint-(\d+)")


def read_trainer_states(folder: Path) -> Table:
    """The runs below a folder, named by their paths: the last value of every logged number."""
    latest: dict[Path, tuple[int, Path]] = {}
    for path in walk(folder):
        if path.name == STATE:
            step = CHECKPOINT.fullmatch(path.parent.name)
            run, at = (path.parent.parent, int(step[1])) if step and path.parent != folder else (path.parent, 1 << 62)
            latest[run] = max(latest.get(run, (-1, path)), (at, path))  # the run's own folder holds the final state
    if not latest:
        raise TiebreakError(f"{printable(folder)}: no {STATE} below it")
    runs: list[tuple[str, dict[str, Cell]]] = []
    metrics: set[str] = set()
    for run, (_, path) in sorted(latest.items()):
        values = _last_values(path)
        for name in RESULTS:
            if (run / name).is_file():
                values |= flat(_object(run / name))
        metrics |= values.keys()
        runs.append((run.relative_to(folder).as_posix(), dict(values)))
    return from_runs(folder, runs, metrics, notes=["the score of a run is the last value that it logged"])


def _last_values(path: Path) -> dict[str, Cell]:
    state = _object(path)
    history = state.get("log_history")
    if not isinstance(history, list):
        raise TiebreakError(f"{printable(path)}: no log_history; is it a file of Hugging Face's Trainer?")
    values: dict[str, Cell] = {}
    for entry in history:
        if isinstance(entry, Mapping):
            values |= {key: value for key, value in flat(entry).items() if isinstance(value, int | float)}
    best = state.get("best_metric")
    return {**values, **({"best_metric": best} if isinstance(best, int | float) else {})}


def _object(path: Path) -> dict[str, Any]:
    content = parse(read_text(path, LIMIT_BYTES), printable(path))
    if not isinstance(content, dict):
        raise TiebreakError(f"{printable(path)}: not a JSON object")
    return content

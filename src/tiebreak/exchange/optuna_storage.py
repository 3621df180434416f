"""Trials of Optuna, from an sqlite file or a journal file, read by optuna (an extra)."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.database import copied, is_database
from tiebreak.exchange.extras import require
from tiebreak.exchange.run_table import Cell, Table, flat, from_runs
from tiebreak.files import check_regular

DEFAULTS = {"arm": "study", "seed": "number", "score": "value"}


def read_optuna(path: Path) -> Table:
    """The finished trials of all studies: study, number, parameters, attributes, value. The file stays as it is."""
    optuna = require("optuna", "optuna", f"{path}: reading an Optuna storage")
    check_regular(path)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        if is_database(path):
            with copied(path) as copy:
                storage = optuna.storages.RDBStorage(f"sqlite:///{copy}")
                try:
                    return _table(path, storage)
                finally:
                    storage.engine.dispose()
        with tempfile.TemporaryDirectory() as folder:
            journal = shutil.copyfile(path, Path(folder) / "journal.log")
            backend = optuna.storages.journal.JournalFileBackend(str(journal))
            return _table(path, optuna.storages.JournalStorage(backend))
    except TiebreakError:
        raise
    except Exception as error:  # whatever a library raises on a file that it cannot read
        raise TiebreakError(f"{path}: Optuna cannot read it ({' '.join(str(error).split())[:200]})") from None


def _table(path: Path, storage: Any) -> Table:
    runs: list[tuple[str, dict[str, Cell]]] = []
    others: Counter[str] = Counter()
    for study in storage.get_all_studies():
        for trial in storage.get_all_trials(study._study_id, deepcopy=False):
            if trial.state.name != "COMPLETE":
                others[trial.state.name.lower()] += 1
                continue
            values: dict[str, Cell] = {"study": study.study_name, "number": trial.number, **flat(trial.params)}
            values |= {key: value for key, value in flat(trial.user_attrs).items() if key not in values}
            scores = list(trial.values or [])
            values |= {"value": scores[0]} if len(scores) == 1 else {f"values_{i}": v for i, v in enumerate(scores)}
            runs.append((f"{study.study_name}/{trial.number}", values))
    if not runs:
        raise TiebreakError(f"{path}: no finished trial of Optuna")
    counts = ", ".join(f"{many} {what}" for what, many in others.items())
    notes = [f"left out, as Optuna says that they did not finish: {counts}"] if others else []
    columns = {name for _, values in runs for name in values}
    defaults = {role: name for role, name in DEFAULTS.items() if role not in columns or role == "score"}
    metrics = sorted(name for name in columns if name.startswith("value"))
    return from_runs(path, runs, metrics, defaults=defaults, notes=notes)

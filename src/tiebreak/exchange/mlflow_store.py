"""Runs of MLflow: an mlruns/ folder, whose files are read as they are, or an sqlite file, by mlflow (an extra)."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.exchange.database import copied
from tiebreak.exchange.extras import require
from tiebreak.exchange.run_table import MOST_FILES, Cell, Table, from_runs, walk
from tiebreak.files import inside, read_bytes, read_text
from tiebreak.text import number_of, printable

META = "meta.yaml"
SMALL = 1 << 20  # bytes of a file that holds a parameter
FINISHED = ("3", "FINISHED", "RunStatus.FINISHED")
Run = tuple[str, dict[str, Cell]]


def is_store(folder: Path) -> bool:
    """Whether a folder is an mlruns/ folder, or an experiment of one."""
    return any(folder.glob(f"*/{META}")) or any(folder.glob(f"*/*/{META}"))


def read_mlruns(folder: Path) -> Table:
    """The runs of an mlruns/ folder: parameters, the last value of every metric, the name of the experiment."""
    runs, metrics, others = list[Run](), set[str](), 0
    for place, meta in _runs(folder / "mlruns" if (folder / "mlruns").is_dir() else folder):
        if meta.get("lifecycle_stage", "active") != "active":
            continue
        if meta.get("status", FINISHED[0]) not in FINISHED:
            others += 1
            continue
        name = meta.get("run_name") or place.name
        last = dict(_last_values(place / "metrics"))
        metrics |= last.keys()
        params: dict[str, Cell] = {
            path.relative_to(place / "params").as_posix(): read_text(path, SMALL).strip()
            for path in walk(place / "params")
        }
        runs.append((name, {"experiment": place.parent.name, **params, **last}))
    return _table(folder, runs, metrics, others)


def read_mlflow_sqlite(path: Path) -> Table:
    """The runs of an sqlite file of MLflow, from a copy: mlflow may change what it opens."""
    what = f"{path}: reading an MLflow database"
    entities = require("mlflow.entities", "mlflow", what)
    store = require("mlflow.store.tracking.sqlalchemy_store", "mlflow", what)
    runs, metrics, others = list[Run](), set[str](), 0
    with copied(path) as copy, tempfile.TemporaryDirectory() as artifacts:
        try:
            opened = store.SqlAlchemyStore(f"sqlite:///{copy}", artifacts)
            experiments = {each.experiment_id: each.name for each in opened.search_experiments()}
            token = None
            while True:
                found = opened.search_runs(list(experiments), "", entities.ViewType.ACTIVE_ONLY, 1000, page_token=token)
                for run in found:
                    if run.info.status not in FINISHED:
                        others += 1
                        continue
                    values: dict[str, Cell] = {"experiment": experiments.get(run.info.experiment_id)}
                    last = {key: float(value) for key, value in run.data.metrics.items()}
                    metrics |= last.keys()
                    runs.append((run.info.run_name or run.info.run_id, {**values, **run.data.params, **last}))
                token = found.token
                if not token:
                    break
            opened.engine.dispose()
        except Exception as error:  # whatever a library raises on a database that it cannot read
            raise TiebreakError(f"{path}: MLflow cannot read it ({' '.join(str(error).split())[:200]})") from None
    return _table(path, runs[::-1], metrics, others)  # MLflow lists the newest first


def _table(where: Path, runs: list[Run], metrics: set[str], others: int) -> Table:
    if not runs:
        raise TiebreakError(f"{printable(where)}: no finished run of MLflow; is it an mlruns folder or a database?")
    notes = ["the score of a run is the last value that it logged"]
    if others:
        notes.append(f"left out, as MLflow says that they did not finish: {number_of(others, 'run')}")
    return from_runs(where, runs, metrics, notes=notes)


def _runs(folder: Path) -> list[tuple[Path, dict[str, str]]]:
    """Folders of runs, with the keys of their meta.yaml (flat `key: value` lines), the oldest first."""
    places = sorted({path.parent for pattern in (f"*/{META}", f"*/*/{META}") for path in folder.glob(pattern)})
    if len(places) > MOST_FILES:
        raise TiebreakError(f"{printable(folder)}: more than {MOST_FILES:,} runs; give the folder of one experiment")
    found = []
    for place in places:
        text = read_text(inside(place, META), SMALL)
        meta = dict(re.findall(r"^(\w+): *['\"]?(.*?)['\"]? *$", text, re.M))
        if "run_id" in meta or "run_uuid" in meta:
            found.append((place, meta))
    return sorted(found, key=lambda item: item[1].get("start_time", "").zfill(20))


def _last_values(folder: Path) -> Iterator[tuple[str, float]]:
    """The last value of every metric: lines of `timestamp value step`, by step and time."""
    for path in walk(folder):
        best: tuple[float, float, float] | None = None
        for number, line in enumerate(read_bytes(path).decode("utf-8", "replace").splitlines(), 1):
            try:
                time, value, *step = map(float, line.split())
            except ValueError:
                raise TiebreakError(f"{printable(path)}, line {number}: not a value that MLflow logged") from None
            own = (step[0] if step else math.inf, time, value)
            best = own if best is None or own[:2] >= best[:2] else best
        if best is not None:
            yield path.relative_to(folder).as_posix(), best[2]

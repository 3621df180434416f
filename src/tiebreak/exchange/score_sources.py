"""Which tool a file or folder is of, and the reader for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tiebreak.errors import TiebreakError
from tiebreak.exchange import (
    database,
    delimited,
    json_lines,
    mlflow_store,
    optuna_storage,
    parquet_table,
    tensorboard_events,
    trainer_state,
    wandb_export,
)
from tiebreak.exchange.pick import Columns, ScoreTable, pick
from tiebreak.exchange.run_table import Table, walk
from tiebreak.files import check_regular, failure
from tiebreak.text import listed, printable
from tiebreak.verdict.scores import Seed

Source = Literal["csv", "json", "parquet", "wandb", "mlflow", "tensorboard", "optuna", "trainer-state"]
Progress = Callable[[str, int, int], None]
SUFFIXES: dict[str, Source] = {
    ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


def read_scores(path: str | Path, **columns: str | None) -> dict[str, dict[Seed, float]]:
    """Scores by arm and seed of a file or folder that `tiebreak compare` reads, in its order.

    `arm`, `seed` and `score` name the columns. A table of several data sets is refused: see `read_score_table`.
    """
    found = read_score_table(path, Columns(**columns))
    if len(found.sets) > 1:
        raise TiebreakError(f"{printable(path)}: {len(found.sets)} data sets; compare them with `tiebreak compare`")
    return next(iter(found.sets.values()))


def read_score_table(
    path: str | Path, columns: Columns | None = None, source: Source | None = None, progress: Progress | None = None
) -> ScoreTable:
    """Scores by data set, arm and seed, with notes on what was left out."""
    return pick(read_table(_local(path), source, progress), columns or Columns())


def read_table(path: Path, source: Source | None = None, progress: Progress | None = None) -> Table:
    """The runs of a file or folder, by the reader for `source` (default: what it looks like)."""
    kind = source or find_source(path)
    if kind == "tensorboard":
        return tensorboard_events.read_tensorboard(_folder(path, kind), progress)
    if kind == "trainer-state":
        return trainer_state.read_trainer_states(_folder(path, kind))
    if kind == "mlflow":
        return mlflow_store.read_mlruns(path) if path.is_dir() else mlflow_store.read_mlflow_sqlite(path)
    readers: dict[str, Callable[[Path], Table]] = {
        "csv": delimited.read_csv,
        "json": json_lines.read_json_lines,
        "parquet": parquet_table.read_parquet,
        "wandb": wandb_export.read_wandb,
        "optuna": optuna_storage.read_optuna,
    }
    return readers[kind](path)


def find_source(path: Path) -> Source:
    """What a file or folder looks like."""
    if path.is_dir():
        return _folder_source(path)
    check_regular(path)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() in SUFFIXES:
        return SUFFIXES[suffix.lower()]
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise failure(path, "", error) from None
    if start.startswith(database.HEADER):
        return "mlflow" if database.owner(path) == "mlflow" else "optuna"
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b'{"op_code"'):
        return "optuna"  # a journal
    if path.suffix == ".gz":
        return "csv"
    return "wandb" if wandb_export.is_export(_header(path)) else "csv"


def _folder_source(folder: Path) -> Source:
    if (folder / "plan.json").is_file():
        raise TiebreakError(f"{printable(folder)}: a results folder of Tiebreak; `tiebreak verdict` answers for it")
    if mlflow_store.is_store(folder):
        return "mlflow"
    found: dict[Source, str] = {}
    for path in walk(folder):
        if path.name.startswith(tensorboard_events.EVENTS):
            found.setdefault("tensorboard", path.name)
        elif path.name == trainer_state.STATE:
            found.setdefault("trainer-state", path.name)
    if len(found) > 1:
        raise TiebreakError(
            f"{printable(folder)}: holds {listed(list(found.values()))}; give --from {' or '.join(found)}"
        )
    if not found:
        known = "mlruns, TensorBoard event files or trainer_state.json"
        raise TiebreakError(f"{printable(folder)}: Is a directory without scores that are known: {known}")
    return next(iter(found))


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            line = file.readline(1 << 20)
    except OSError as error:
        raise failure(path, "", error) from None
    return [cell.strip().strip('"') for cell in line.split(",")]


def _folder(path: Path, kind: str) -> Path:
    if not path.is_dir():
        raise TiebreakError(f"{printable(path)}: not a folder; --from {kind} reads a folder")
    return path


def _local(path: str | Path) -> Path:
    text = str(path)
    if text.startswith("sqlite:///"):
        return Path(text.removeprefix("sqlite:///"))
    if "://" in text:
        raise TiebreakError(f"{printable(text)}: only files and folders are read; export it, or give a local copy")
    return Path(path)

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange import database


def with_tables(path: Path, *names: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for name in names:
            connection.execute(f"create table {name} (x)")
        connection.commit()
    return path


def test_the_owner_is_known_by_its_tables_and_the_file_is_not_touched(tmp_path: Path) -> None:
    path = with_tables(tmp_path / "o.db", "studies", "trials", "trial_values")
    before = path.read_bytes()
    assert database.is_database(path)
    assert database.owner(path) == "optuna"
    assert path.read_bytes() == before
    assert database.owner(with_tables(tmp_path / "m.db", "experiments", "runs", "latest_metrics")) == "mlflow"
    assert [each.name for each in tmp_path.iterdir() if each.name not in ("o.db", "m.db")] == []


def test_other_and_damaged_databases_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="neither of MLflow nor of Optuna"):
        database.owner(with_tables(tmp_path / "x.db", "other"))
    with closing(sqlite3.connect(with_tables(tmp_path / "v.db", "studies", "trials", "trial_values"))) as connection:
        endless = "with recursive t(x) as (select 1 union all select x + 1 from t) select x from t"
        connection.execute(f"create view trial_params as {endless}")
    with pytest.raises(TiebreakError, match="view 'trial_params'"):
        database.owner(tmp_path / "v.db")
    damaged = tmp_path / "d.db"
    damaged.write_bytes(database.HEADER + b"x" * 500)
    with pytest.raises(TiebreakError, match="damaged"):
        database.owner(damaged)

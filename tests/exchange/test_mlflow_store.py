from __future__ import annotations

from pathlib import Path

import pytest

from support.tracker_files import mlruns, value
from tiebreak.errors import TiebreakError
from tiebreak.exchange.mlflow_store import is_store, read_mlruns


def test_the_last_value_is_that_of_the_last_step(tmp_path: Path) -> None:
    folder = mlruns(tmp_path)
    assert is_store(folder)
    assert not is_store(tmp_path / "nothing")
    assert [name for name, _ in read_mlruns(tmp_path).rows] == [name for name, _ in read_mlruns(folder).rows]
    found = read_mlruns(folder)
    assert list(found.metrics) == ["val/acc"]
    place = list(found.columns).index("val/acc")
    assert {cells[0]: cells[place] for _, cells in found.rows}["vit-3"] == value("vit", 3)


def test_a_damaged_metric_is_one_line(tmp_path: Path) -> None:
    folder = mlruns(tmp_path)
    (folder / "123" / "vit0" / "metrics" / "val" / "acc").write_text("1 2 3\nnot numbers\n")
    with pytest.raises(TiebreakError, match="acc, line 2"):
        read_mlruns(folder)


def test_a_store_without_finished_runs_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "meta.yaml").write_text("experiment_id: 0\n")
    with pytest.raises(TiebreakError, match="no finished run"):
        read_mlruns(tmp_path)

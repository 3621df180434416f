from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange.wandb_export import is_export, read_wandb


def test_headers_of_exports_are_known() -> None:
    assert is_export(["Name", "State", "lr"])
    assert is_export(["Step", "vit-1 - acc", "vit-1 - acc__MIN"])
    assert is_export(["trainer/global_step", "vit-1 - acc", "vit-1 - acc__MIN", "vit-1 - acc__MAX"])
    assert not is_export(["seed", "vit - small", "vit - large"])
    assert not is_export(["arm", "seed", "score"])
    assert not is_export(["Name", "seed", "score"])
    assert not is_export([])


def test_a_curve_that_ended_early_gives_its_last_value(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('"Step","a-1 - acc","b-1 - acc"\n"0","0.5","0.6"\n"1","","0.7"\n')
    assert [cells for _, cells in read_wandb(path).rows] == [["a-1", "0.5"], ["b-1", "0.7"]]


def test_what_is_no_export_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("arm,seed\na,1\n")
    with pytest.raises(TiebreakError, match="line 1: neither"):
        read_wandb(path)


def test_runs_of_the_same_name_are_several_runs(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('"Step","vit - acc","vit - _step","vit - acc","vit - _step"\n"0","0.5","0","0.6","0"\n')
    table = read_wandb(path)
    assert table.metrics == ["acc"]
    assert [cells for _, cells in table.rows] == [["vit", "0.5", "0"], ["vit", "0.6", "0"]]


def test_dicts_in_cells_as_pandas_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "project.csv"
    line = "0,\"{'acc': 0.5, '_step': 9, 'loss': nan}\",\"{'arch': 'vit', 'seed': 3}\",sunny-1\n"
    path.write_text(",summary,config,name\n" + line)
    table = read_wandb(path)
    assert (table.metrics, table.defaults) == (["summary.acc", "summary.loss"], {"seed": "config.seed"})
    (cells,) = (dict(zip(table.columns, cells, strict=True)) for _, cells in table.rows)
    assert (cells["config.arch"], cells["config.seed"], cells["summary.acc"]) == ("vit", 3, 0.5)
    assert cells["summary.loss"] is None
    path.write_text(",summary,config,name\n0,__import__('os'),{},sunny-1\n")
    with pytest.raises(TiebreakError, match="line 2: summary: should be a dict"):
        read_wandb(path)

from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange.pick import Columns, pick
from tiebreak.exchange.run_table import Cell, Table


def table(columns: str, *rows: str, **more: object) -> Table:
    def cells(row: str) -> list[Cell]:
        return [cell.strip() or None for cell in row.split(",")]

    numbered = [(number, cells(row)) for number, row in enumerate(rows, 2)]
    return Table(where=Path("t.csv"), columns=columns.split(","), rows=numbered, **more)  # type: ignore[arg-type]


def test_several_columns_make_one_arm() -> None:
    found = pick(table("arch,opt,seed,acc", "vit,adam,0,1", "vit,sgd,0,2"), Columns(arm="arch,opt", score="acc"))
    assert found.sets == {"": {"vit, adam": {0: 1.0}, "vit, sgd": {0: 2.0}}}
    assert found.score == "acc"


def test_names_that_no_utf8_can_hold_are_shown_escaped() -> None:
    """Of folders, or in JSON: reports could not be written."""
    long = pick(table("arm,seed,score", "caf\udce9,0,1", "b,0,2"), Columns())
    wide = pick(table("seed,caf\udce9,b", "0,1,2"), Columns())
    assert long.sets == wide.sets == {"": {"caf\\udce9": {0: 1.0}, "b": {0: 2.0}}}


def test_a_table_without_seeds_is_unpaired() -> None:
    found = pick(table("arm,score", "a,1", "a,2", "b,3"), Columns())
    assert not found.seeded
    assert found.sets == {"": {"a": {0: 1.0, 1: 2.0}, "b": {2: 3.0}}}
    assert not pick(table("a,b", "1,2", "3,4"), Columns()).seeded


def test_data_sets_are_kept_apart() -> None:
    long = pick(table("dataset,arm,seed,score", "x,a,0,1", "x,b,0,2", "y,a,0,3", "y,b,0,4"), Columns())
    wide = pick(table("set,seed,a,b", "x,0,1,2", "y,0,3,4"), Columns(dataset="set"))
    assert long.sets == wide.sets == {"x": {"a": {0: 1.0}, "b": {0: 2.0}}, "y": {"a": {0: 3.0}, "b": {0: 4.0}}}


def test_whole_numbers_that_were_read_as_floats_are_seeds() -> None:
    rows: list[tuple[int | str, list[Cell]]] = [("row 1", ["a", 0.0, 1.5]), ("row 2", ["b", 0.0, 2.5])]
    found = pick(Table(where=Path("t.parquet"), columns=["arm", "seed", "score"], rows=rows), Columns())
    assert found.sets == {"": {"a": {0: 1.5}, "b": {0: 2.5}}}


@pytest.mark.parametrize(
    ("columns", "rows", "named", "words"),
    [
        ("arm,seed,score", ["a,0,1", "a,0,2"], {}, "line 3.*'a'.*second score for seed 0"),
        ("dataset,arm,seed,score", ["x,a,0,1", "x,a,0,2"], {}, "second score for seed 0 on 'x'"),
        ("seed,a,b", ["0,1,2", "0,1,2"], {}, "line 3.*second.*seed 0"),
        ("model,seed,acc", ["vit,0,1", "cnn,0,2"], {}, "line 2.*no column 'arm'.*'model' holds 'vit'.*--arm"),
        ("arm,random_seed,score", ["a,0,1", "b,0,2"], {}, "--seed random_seed"),
        ("random_state,a,b", ["0,1,2"], {}, "--seed random_state"),
        ("run,a,b", [f"{n},.5,.6" for n in range(1, 6)], {}, "'run' counts the lines.*--seed run"),
        ("arm,seed,score", ["a,0,1"], {"score": "acc"}, "no column 'acc'.*--score"),
        ("arm,seed,score", ["a,0,1"], {"arm": "arch,lr"}, "no column 'arch,lr'"),
        ("dataset,arm,seed,score", [",a,0,1"], {}, "line 2: no dataset"),
        ("arm,seed,score", ["a,0,true"], {}, "'true' is not a number"),
        ("arm,seed,score", ["a,0,1", "b,0,1"], {"run_name": "{arm}"}, "no names of runs"),
    ],
)
def test_what_cannot_be_read_is_one_line(columns: str, rows: list[str], named: dict[str, str], words: str) -> None:
    with pytest.raises(TiebreakError, match=words) as caught:
        pick(table(columns, *rows), Columns(**named))
    assert "\n" not in str(caught.value)


def test_a_name_without_an_arm_asks_for_a_pattern() -> None:
    runs = table("run,acc", "sunny,1", "rainy,2", named="run", metrics=["acc"])
    with pytest.raises(TiebreakError, match=r"no arm in the name 'sunny'.*--run-name"):
        pick(runs, Columns())

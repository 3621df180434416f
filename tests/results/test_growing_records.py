"""Records read row by row equal those read at once, whatever happens to the store in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from support import hand_made, watched
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.growing_records import GrowingRecords
from tiebreak.results.record import Records
from tiebreak.results.store import STORE_FILE, Store


@pytest.fixture
def plan() -> Plan:
    return hand_made.plan(hand_made.study())


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path)) as store:
        yield store


def plain(records: Records) -> dict[str, Any]:
    """The records as values that can be compared."""
    return {
        "epochs": {
            path: {epoch: asdict(record) for epoch, record in some.items()} for path, some in records.epochs.items()
        },
        "runs": {identity: asdict(record) for identity, record in records.runs.items()},
        "finals": {
            identity: {name: dict(final.metrics) for name, final in some.items()}
            for identity, some in records.finals.items()
            if some
        },
        "looks": records.looks,
        "damaged": sorted(records.damaged),
    }


def read(growing: GrowingRecords, folder: Path) -> tuple[Records, bool]:
    """Read what is new, and compare with all that there is."""
    with closing(Store.open(folder)) as store:
        found, ended = growing.read(store)
        assert plain(found) == plain(store.records())
    return found, ended


def test_rows_are_added_as_they_come(tmp_path: Path, plan: Plan, writer: Store) -> None:
    growing = GrowingRecords()
    assert read(growing, tmp_path)[1] is False
    for run in plan.runs.values():
        with writer.transaction():
            watched.add_epoch(writer, run, 1)
        assert read(growing, tmp_path)[1] is False  # nothing ended
        with writer.transaction():
            watched.add_run(writer, run)
        assert read(growing, tmp_path)[1] is True


def test_the_last_run_may_be_replaced_by_another_attempt(tmp_path: Path, plan: Plan, writer: Store) -> None:
    growing, (first, last, *_) = GrowingRecords(), plan.runs.values()
    for run in (first, last):
        with writer.transaction():
            watched.add_run(writer, run, "failed", "out of memory")
    read(growing, tmp_path)
    for run in (last, first):  # the last one keeps its rowid
        with writer.transaction():
            watched.add_run(writer, run)
        found, _ = read(growing, tmp_path)
        assert found.runs[run.identity].status == "done"


def test_rows_may_go(tmp_path: Path, plan: Plan, writer: Store) -> None:
    growing, runs = GrowingRecords(), list(plan.runs.values())
    with writer.transaction():
        for run in runs[:4]:
            watched.add_run(writer, run)
    read(growing, tmp_path)
    with writer.transaction():
        writer.drop_run(runs[1].identity)
        watched.add_run(writer, runs[5])
    found, _ = read(growing, tmp_path)
    assert runs[1].identity not in found.runs


def test_a_damaged_row_is_left_out_and_named(tmp_path: Path, plan: Plan, writer: Store) -> None:
    growing, run = GrowingRecords(), next(iter(plan.runs.values()))
    with writer.transaction():
        watched.add_run(writer, run)
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as other, other:
        for table in ("epochs", "runs", "finals"):
            other.execute(f"UPDATE {table} SET content = content || ' ' WHERE rowid = 1")
    found, _ = read(growing, tmp_path)
    assert len(found.damaged) == 3
    assert not found.runs


def test_another_file_is_read_from_its_beginning(tmp_path: Path, plan: Plan) -> None:
    growing, (one, two, *_) = GrowingRecords(), plan.runs.values()
    for folder, run in ((tmp_path / "a", one), (tmp_path / "b", two)):
        folder.mkdir()
        watched.end_runs(folder, [run])
        read(growing, folder)
    (tmp_path / "b" / STORE_FILE).replace(tmp_path / "a" / STORE_FILE)
    found, _ = read(growing, tmp_path / "a")
    assert list(found.runs) == [two.identity]


def test_a_row_that_is_no_record_is_refused_each_time(tmp_path: Path, plan: Plan, writer: Store) -> None:
    growing, run = GrowingRecords(), next(iter(plan.runs.values()))
    with writer.transaction():
        watched.add_run(writer, run, status="lost")  # type: ignore[arg-type]
    for _ in range(2):
        with closing(Store.open(tmp_path)) as store, pytest.raises(TiebreakError, match=f"runs, {run.identity}"):
            growing.read(store)

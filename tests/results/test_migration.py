"""A folder that the version with schema 1 wrote (commit 7fbe5a1, two runs of two epochs on the karate club)."""

from __future__ import annotations

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from support.damage import run_here
from tiebreak import api
from tiebreak.results.migration import SCHEMA_VERSION, row_hash
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.stored_study import stored_study

OLD = Path(__file__).parent / "fixtures" / "schema1.zip"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(tmp_path / "out")
    return tmp_path / "out"


def version(folder: Path) -> int:
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_readers_read_an_old_store_and_leave_it_as_it_is(folder: Path) -> None:
    before = (folder / STORE_FILE).read_bytes()
    with closing(Store.open(folder)) as store:
        assert store.schema == 1
        assert len(store.records().runs) == len(store.checkpoints()) == 2
        assert store.files() == {}
        assert store.damage() == []
    checked = api.check(folder)
    assert checked.problems == []
    assert "plan.json" not in checked.what
    assert any("no digest" in note and "plan.json" in note for note in checked.notes)
    assert (folder / STORE_FILE).read_bytes() == before


def test_an_old_store_is_migrated_with_all_its_rows(folder: Path) -> None:
    with closing(Store.open(folder)) as store:
        records, kept = store.records(), store.checkpoints()
    with closing(Store.create(folder)) as store:
        migrated = store.records()
        assert (migrated.runs, migrated.epochs, store.checkpoints()) == (records.runs, records.epochs, kept)
        assert set(migrated.finals) == set(records.finals)
        assert store.damage() == []
    assert version(folder) == SCHEMA_VERSION


def test_a_migration_that_is_interrupted_leaves_the_old_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*parts: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("tiebreak.results.migration.row_hash", stop)
    with pytest.raises(KeyboardInterrupt):
        Store.create(folder)
    assert version(folder) == 1
    monkeypatch.undo()
    Store.create(folder).close()
    assert version(folder) == SCHEMA_VERSION


@pytest.mark.usefixtures("here")
def test_an_old_folder_goes_on_and_ends_complete(folder: Path) -> None:
    study = stored_study(folder)
    assert study is not None
    said = run_here(study, folder)
    assert any(STORE_FILE in line and "schema 1" in line for line in said)
    checked = api.check(folder)
    assert (checked.problems, checked.notes) == ([], [])
    for name in ("study.toml", "plan.json", "verdict.json", "report.html", "report.md"):
        assert name in checked.what


def test_the_hash_of_a_row_tells_its_columns_apart() -> None:
    assert row_hash("ab", "c") != row_hash("a", "bc")
    assert row_hash("a", 1) == row_hash("a", "1")
    assert row_hash(b"a") == row_hash("a")

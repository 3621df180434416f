"""A store that a stranger made: each trick is refused with one line, in seconds, and no other file is touched."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.hand_made import EPOCH, RUN
from tiebreak.errors import TiebreakError
from tiebreak.results import store_limits
from tiebreak.results.connection import connect, readable
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.store_limits import SUPER_JOURNAL, LimitedConnection

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i, i FROM n"


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_run(RUN)
        store.add_epoch(EPOCH)
    return tmp_path / STORE_FILE


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def refusal(path: Path) -> str:
    """The line that both ways to open the store end with."""
    lines = set()
    for opened in (Store.open, Store.create):
        with pytest.raises(TiebreakError) as caught, closing(opened(path.parent)) as store:
            store.records()
        lines.add(str(caught.value))
    (line,) = lines
    assert line.startswith(str(path))
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("kind", "statements"),
    [
        ("view", ("DROP TABLE runs", f"CREATE VIEW runs AS {ENDLESS}")),
        ("virtual", ("DROP TABLE runs", "CREATE VIRTUAL TABLE runs USING fts5(identity, trajectory, content, sha256)")),
        ("trigger", ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",)),
        ("columns", ("DROP TABLE runs", "CREATE TABLE runs (identity TEXT PRIMARY KEY)")),
        (
            "columns",
            (
                "DROP TABLE runs",
                "CREATE TABLE runs (identity TEXT, trajectory TEXT, content TEXT AS (hex(zeroblob(100))), sha256 TEXT)",
            ),
        ),
    ],
    ids=["view", "virtual table", "trigger", "other columns", "computed column"],
)
def test_anything_but_our_plain_tables_is_refused(path: Path, kind: str, statements: tuple[str, ...]) -> None:
    change(path, *statements)
    assert kind in refusal(path)


@pytest.mark.parametrize("name", [STORE_FILE, f"{STORE_FILE}-wal", f"{STORE_FILE}-shm", f"{STORE_FILE}-journal"])
def test_no_link_is_followed(path: Path, tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    victim = tmp_path_factory.mktemp("elsewhere") / "letter.txt"
    victim.write_text("dear")
    link = path.parent / name
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    for opened in (Store.open, Store.create):
        with pytest.raises(TiebreakError, match="symbolic link"):
            opened(path.parent)
    assert victim.read_text() == "dear"


def test_a_journal_that_names_a_file_to_delete_is_refused(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "letter.txt"
    victim.write_text("dear")
    change(path, "PRAGMA journal_mode=DELETE")
    name = str(victim).encode()
    page_number = (0x40000000 // 4096 + 1).to_bytes(4, "big")
    trailer = page_number + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + SUPER_JOURNAL
    header = bytes.fromhex("d9d505f920a163d7") + bytes(4) + bytes(4) + (1).to_bytes(4, "big")
    header += (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    path.with_name(f"{STORE_FILE}-journal").write_bytes(header.ljust(512, b"\0") + trailer)
    for opened in (Store.open, Store.create):
        with pytest.raises(TiebreakError, match="journal"):
            opened(tmp_path)
    assert victim.read_text() == "dear"


def test_a_statement_that_does_not_end_is_interrupted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedConnection, "limit_seconds", 0.2)

    def read() -> None:
        with readable(path), closing(connect(path)) as connection:
            connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchall()

    started = time.process_time()
    with pytest.raises(TiebreakError, match="too long"):
        read()
    assert time.process_time() - started < 30


def test_a_value_that_is_too_large_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(path, "UPDATE runs SET content = hex(zeroblob(20000))")
    monkeypatch.setattr(store_limits, "LIMIT_VALUE", 30_000)
    assert "too big" in refusal(path)


def advice(path: Path, act: Callable[[], object]) -> str:
    with pytest.raises(TiebreakError) as caught, readable(path):
        act()
    return str(caught.value)


def sqlite_error(code: int) -> Callable[[], None]:
    def act() -> None:
        error = sqlite3.OperationalError("what SQLite says")
        error.sqlite_errorcode = code
        raise error

    return act


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (sqlite3.SQLITE_FULL, "make room"),
        (sqlite3.SQLITE_IOERR_WRITE, "quota"),
        (sqlite3.SQLITE_BUSY, "another program"),
        (sqlite3.SQLITE_CORRUPT, "sets it aside"),
        (sqlite3.SQLITE_NOTADB, "sets it aside"),
    ],
)
def test_the_advice_fits_the_cause(path: Path, code: int, word: str) -> None:
    line = advice(path, sqlite_error(code))
    assert word in line
    assert ("aside" in line) == (word == "sets it aside")


def test_a_path_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    deep = Path(tmp_path, *["x" * 200] * 30)
    with pytest.raises(TiebreakError, match=r"too long.*shorter"):
        Store.create(deep)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said_to_be(path: Path) -> None:
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        with pytest.raises(TiebreakError, match="permissions"):
            Store.create(path.parent)
    finally:
        path.parent.chmod(0o700)


def test_a_full_disk_is_said_to_be(path: Path) -> None:
    with closing(Store.create(path.parent)) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages}")

        def fill() -> None:
            with store.transaction():
                store._connection.execute("INSERT INTO runs VALUES ('x', '', hex(zeroblob(100000)), '')")

        with pytest.raises(TiebreakError, match=r"full: make room"):
            fill()


def test_the_rows_of_a_good_store_are_read(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with closing(Store.open(path.parent)) as store:
        assert store.records().runs == {RUN.identity: RUN}
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before

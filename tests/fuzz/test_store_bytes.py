"""Messages of workers and the bytes, rows and log of a store take anything, as the other parsers do."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import hand_made
from support.fuzzing import Edits, check, edited, edits, fuzz, limited_memory
from tiebreak.drive import messages
from tiebreak.drive.messages import EpochDone, Job, RunEnded
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.results.connection import log_of
from tiebreak.results.migration import HASHED, SCHEMA_VERSION, row_hash
from tiebreak.results.record import FileRecord, LookRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.write_log import log_problem
from tiebreak.verdict.model import VERDICT_FILE, Verdict


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    with limited_memory():
        yield


def lines() -> list[str]:
    epoch = EpochDone(records=(hand_made.EPOCH,), checkpoints=(hand_made.CHECKPOINT,))
    job = Job(runs=({"seed": 1},), folder="out", data_dir=None, device="cpu", checkpoints=((hand_made.CHECKPOINT,),))
    ended = RunEnded(record=hand_made.RUN, finals=(hand_made.FINAL,))
    return [messages.encode(epoch), messages.encode(ended), messages.encode_job(job)]


@fuzz
@example(which=0, changes=[(0, 1 << 20, b"[" * 100_000)])
@example(which=1, changes=[(0, 1 << 20, b'{"kind": "Note", "text": 5}')])
@given(which=st.integers(0, 2), changes=edits)
def test_messages(which: int, changes: Edits) -> None:
    line = edited(lines()[which].encode(), changes).decode(errors="replace")
    check(lambda: (messages.decode_job if which == 2 else messages.decode)(line))


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_epoch(hand_made.EPOCH)
        store.add_run(hand_made.RUN)
        store.add_final(hand_made.FINAL)
        store.add_exhibit(hand_made.EXHIBIT)
        store.add_choice(hand_made.CHOICE)
        store.add_step_times(hand_made.TIMES)
        store.add_checkpoint(hand_made.CHECKPOINT)
        store.set_file(FileRecord(name="plan.json", sha256="ab" * 32))
        store.add_look(LookRecord(runs=(hand_made.RUN.identity,), seeds=6, end=6))
    shutil.copy(tmp_path / STORE_FILE, tmp_path / "good")
    return tmp_path


def read_store(folder: Path) -> None:
    with closing(Store.open(folder)) as store:
        store.damage()
        store.checkpoints()
        store.files()
        store.records()
        store.looks()


VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary()


@pytest.mark.parametrize("table", HASHED[SCHEMA_VERSION])
@fuzz
@example(column=2, value="[" * 100_000, changes=None)
@example(column=2, value="[]", changes=None)
@given(column=st.integers(0, 3), value=VALUES, changes=st.none() | edits)
def test_rows_of_the_store(folder: Path, table: str, column: int, value: Any, changes: Edits | None) -> None:
    """A row with another value in it, and the hash that belongs to it."""
    shutil.copy(folder / "good", folder / STORE_FILE)
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        (row,) = connection.execute(f"SELECT * FROM {table}").fetchall()
        content = list(row[:-1])
        at = column % len(content)
        if changes is not None:
            old = content[at]
            new = edited(old if isinstance(old, bytes) else str(old).encode(), changes)
            value = new if isinstance(old, bytes) else new.decode(errors="replace")
        content[at] = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        marks = ", ".join("?" * len(row))
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*content, row_hash(*content)))
    check(lambda: read_store(folder))


@fuzz
@example(changes=[(3312, 0, b"\xff")])
@given(changes=edits)
def test_bytes_of_the_store(folder: Path, changes: Edits) -> None:
    content = bytearray((folder / "good").read_bytes())
    for place, _, new in changes:
        at = place % len(content)
        content[at : at + len(new)] = new[: len(content) - at]
    (folder / STORE_FILE).write_bytes(content)
    check(lambda: read_store(folder))


@fuzz
@given(changes=edits)
def test_bytes_of_the_log(folder: Path, changes: Edits) -> None:
    """The write-ahead log of a killed run."""
    log = log_of(folder / STORE_FILE)
    if not (folder / "good-log").exists():
        with closing(Store.create(folder)) as store:
            with store.transaction():
                store.add_run(replace(hand_made.RUN, identity="another"))
            shutil.copy(log, folder / "good-log")
    log.write_bytes(edited((folder / "good-log").read_bytes(), changes))
    check(lambda: log_problem(log))
    shutil.copy(folder / "good", folder / STORE_FILE)
    check(lambda: read_store(folder))


@fuzz
@given(content=st.recursive(VALUES.filter(lambda value: not isinstance(value, bytes)), st.lists).map(json.dumps))
def test_json_of_any_form(tmp_path: Path, content: str) -> None:
    for name, read in ((PLAN_FILE, Plan.read), (VERDICT_FILE, Verdict.read)):
        (tmp_path / name).write_text(content, "utf-8", "replace")
        check(lambda read=read: read(tmp_path))  # type: ignore[misc]
    check(lambda: messages.decode(content))

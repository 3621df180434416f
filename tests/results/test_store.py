from __future__ import annotations

import dataclasses
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from support.hand_made import CHECKPOINT, CHOICE, EPOCH, EXHIBIT, FILE, FINAL, RUN, TIMES
from tiebreak.errors import TiebreakError
from tiebreak.results.migration import APPLICATION
from tiebreak.results.packing import pack, unpack
from tiebreak.results.record import Status
from tiebreak.results.store import STORE_FILE, Store

KILLED = """
import os, signal, sys
from pathlib import Path
from tiebreak.results.record import RunRecord
from tiebreak.results.store import Store
store = Store.create(Path(sys.argv[1]))
for name in ("kept", "lost"):
    with store.transaction():
        store.add_run(RunRecord(identity=name, trajectory="", status="done", epoch=1))
        if name == "lost":
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path)) as store:
        yield store


def fill(store: Store) -> None:
    with store.transaction():
        store.add_epoch(EPOCH)
        store.add_run(RUN)
        store.add_final(FINAL)
        store.add_exhibit(EXHIBIT)
        store.add_checkpoint(CHECKPOINT)
        store.add_choice(CHOICE)
        store.add_step_times(TIMES)
        store.set_file(FILE)


def change(folder: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def refused(folder: Path) -> str:
    """The one line with which a store is refused, whichever way it is opened."""
    lines = []
    for way in (Store.open, Store.create):
        with pytest.raises(TiebreakError) as caught:
            way(folder)
        lines.append(str(caught.value))
    assert lines[0] == lines[1]
    assert "\n" not in lines[0]
    return lines[0]


def complaints(folder: Path) -> list[str]:
    try:
        with closing(Store.open(folder)) as store:
            return store.damage()
    except TiebreakError as error:
        return [str(error)]


def test_everything_that_is_added_comes_back(tmp_path: Path, store: Store) -> None:
    fill(store)
    with closing(Store.open(tmp_path)) as reader:
        records = reader.records()
        assert records.epochs == {"path": {1: EPOCH}}
        assert records.runs == {"run": RUN}
        assert reader.checkpoints() == [CHECKPOINT]
        assert records.choices == reader.choices() == {("cohort", "cuda"): CHOICE}
        assert records.step_times == reader.step_times() == {("cohort", "cuda"): TIMES}
        assert reader.rows() == 8
        assert reader.damage() == []
    (found,) = records.finals["run"].values()
    assert dataclasses.replace(found, outcomes={}) == dataclasses.replace(FINAL, outcomes={})
    np.testing.assert_equal(dict(found.outcomes), FINAL.outcomes)
    (shown,) = records.exhibits["run"].values()
    assert (shown.identity, shown.name) == ("run", "examples")
    np.testing.assert_equal(dict(shown.arrays), EXHIBIT.arrays)


def test_text_that_no_utf8_can_hold_is_stored_and_read(tmp_path: Path, store: Store) -> None:
    """Such as a file name that is not UTF-8, in the message of an exception."""
    with store.transaction():
        store.add_run(dataclasses.replace(RUN, reason="caf\udce9 \U0001f600", provenance={"\ud800": "x"}))
    with closing(Store.open(tmp_path)) as reader:
        (found,) = reader.records().runs.values()
    assert (found.reason, found.provenance) == ("caf\\udce9 \U0001f600", {"\\ud800": "x"})


def test_numbers_come_back_to_the_last_bit(store: Store) -> None:
    values = {"a": 0.1 + 0.2, "b": 1e-310, "c": float("-inf"), "d": 5e300}
    with store.transaction():
        store.add_epoch(dataclasses.replace(EPOCH, metrics={**values, "nan": float("nan")}))
    found = dict(store.records().epochs["path"][1].metrics)
    assert np.isnan(found.pop("nan"))
    assert found == values


@given(
    st.dictionaries(
        st.sampled_from(["accuracy", "loss"]),
        hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0), elements=st.floats(width=32)),
    )
)
def test_outcomes_come_back_to_the_last_bit(outcomes: dict[str, Any]) -> None:
    found = unpack(pack(outcomes))
    assert {name: (values.shape, values.tobytes()) for name, values in found.items()} == {
        name: (values.shape, values.tobytes()) for name, values in outcomes.items()
    }


def test_an_epoch_that_is_there_stays_as_it_is(store: Store) -> None:
    fill(store)
    with store.transaction():
        store.add_epoch(dataclasses.replace(EPOCH, seconds={"train": 99.0}))
    assert store.records().epochs["path"][1] == EPOCH


def test_a_run_that_is_tried_again_is_replaced(store: Store) -> None:
    failed = dataclasses.replace(RUN, status="failed", reason="no reason")
    for record in (failed, RUN):
        with store.transaction():
            store.add_run(record)
    assert store.records().runs == {"run": RUN}


@pytest.mark.parametrize("status", ["done", "diverged"])
def test_a_failure_never_replaces_a_result(store: Store, status: Status) -> None:
    result = dataclasses.replace(RUN, status=status)
    for record in (result, dataclasses.replace(RUN, status="failed", epoch=0, reason="later")):
        with store.transaction():
            store.add_run(record)
    assert store.records().runs == {"run": result}


def test_a_failure_replaces_a_damaged_record(tmp_path: Path, store: Store) -> None:
    fill(store)
    change(tmp_path, "UPDATE runs SET content = '{' WHERE identity = 'run'")
    failed = dataclasses.replace(RUN, status="failed", reason="later")
    with store.transaction():
        store.add_run(failed)
    assert store.records().runs == {"run": failed}


def test_checkpoints_are_kept_in_order_replaced_and_dropped(store: Store) -> None:
    later = dataclasses.replace(CHECKPOINT, epoch=2, file="run-2.safetensors")
    other = dataclasses.replace(CHECKPOINT, identity="another")
    changed = dataclasses.replace(CHECKPOINT, sha256="cd" * 32)
    with store.transaction():
        for record in (later, other, CHECKPOINT, changed):
            store.add_checkpoint(record)
    assert store.checkpoints() == [other, changed, later]
    with store.transaction():
        store.drop_checkpoint(changed)
    assert store.checkpoints() == [other, later]


def test_checkpoints_of_some_runs_are_found(store: Store) -> None:
    other = dataclasses.replace(CHECKPOINT, identity="another")
    with store.transaction():
        for record in (CHECKPOINT, other):
            store.add_checkpoint(record)
    assert store.checkpoints(["another", "nobody"]) == [other]
    assert store.checkpoints([]) == []


def test_a_choice_belongs_to_cohort_and_device_and_is_replaced(store: Store) -> None:
    here = dataclasses.replace(CHOICE, device="cpu", strategy="loop", fused_ms=None, reason="it looks at values")
    again = dataclasses.replace(CHOICE, fits=200)
    with store.transaction():
        for choice in (CHOICE, here, again):
            store.add_choice(choice)
    assert store.choices() == {("cohort", "cuda"): again, ("cohort", "cpu"): here}


def test_a_folder_from_before_strategies_is_read_and_goes_on(tmp_path: Path) -> None:
    with closing(Store.create(tmp_path)) as store:
        fill(store)
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as connection:
        for statement in (
            "DROP TABLE strategies",
            "DROP TABLE files",
            "ALTER TABLE checkpoints DROP COLUMN row_sha256",
        ):
            connection.execute(statement)
        for number in ("user_version=1", "application_id=0"):
            connection.execute(f"PRAGMA {number}")
    with closing(Store.open(tmp_path)) as reader:
        assert reader.records().runs == {"run": RUN}
        assert reader.records().choices == reader.choices() == {}
        assert reader.rows() == 4
    with closing(Store.create(tmp_path)) as store:
        with store.transaction():
            store.add_choice(CHOICE)
        assert store.choices() == {("cohort", "cuda"): CHOICE}
        assert store.records().runs == {"run": RUN}
        assert store.checkpoints() == [CHECKPOINT]
        assert store.damage() == []


@pytest.mark.parametrize(
    ("table", "column", "old", "new"),
    [
        ("epochs", "content", "0.25", "0.35"),
        ("epochs", "trajectory", "path", "pith"),
        ("runs", "content", "done", "dona"),
        ("runs", "trajectory", "path", "pith"),
        ("finals", "content", "accuracy", "accurbcy"),
        ("finals", "evaluation", "shift=2", "shift=3"),
        ("exhibits", "name", "examples", "exemples"),
        ("strategies", "content", "fused", "fusel"),
        ("strategies", "device", "cuda", "cude"),
        ("step_times", "content", "1.25", "1.35"),
        ("checkpoints", "file", "run-1", "run-2"),
        ("files", "sha256", "ab", "cd"),
    ],
)
def test_a_changed_row_is_named_and_never_used(
    tmp_path: Path, store: Store, table: str, column: str, old: str, new: str
) -> None:
    fill(store)
    change(tmp_path, f"UPDATE {table} SET {column} = replace({column}, ?, ?)", old, new)
    (line,) = store.damage()
    assert f"table {table}" in line
    assert "damaged" in line
    records = store.records()
    left: dict[str, object] = {
        "epochs": records.epochs,
        "runs": records.runs,
        "finals": records.finals,
        "exhibits": records.exhibits,
    }
    left |= {"strategies": records.choices, "checkpoints": store.checkpoints(), "files": store.files()}
    left["step_times"] = records.step_times
    assert not left.pop(table)
    assert all(left.values())
    assert records.damaged == ((line,) if table not in ("strategies", "step_times", "checkpoints", "files") else ())


def test_a_changed_epoch_number_is_named(tmp_path: Path, store: Store) -> None:
    fill(store)
    change(tmp_path, "UPDATE epochs SET epoch = 2")
    assert len(store.damage()) == 1


def test_changed_outcomes_are_named_and_never_used(tmp_path: Path, store: Store) -> None:
    fill(store)
    blob = bytearray(pack(FINAL.outcomes))
    blob[50] ^= 1
    change(tmp_path, "UPDATE finals SET outcomes = ?", bytes(blob))
    (line,) = store.damage()
    assert "table finals, run shift=2" in line
    assert store.records().finals == {}
    assert store.records().damaged == (line,)


@pytest.mark.parametrize("bit", [0x01, 0x80], ids=["another letter", "not text any more"])
@pytest.mark.parametrize("word", [b"train_loss", b"provenance", b"accuracy"])
def test_a_bit_flipped_on_the_disk_is_found(tmp_path: Path, word: bytes, bit: int) -> None:
    with closing(Store.create(tmp_path)) as store:
        fill(store)
    path = tmp_path / STORE_FILE
    content = bytearray(path.read_bytes())
    content[content.index(word) + 3] ^= bit
    path.write_bytes(content)
    with closing(Store.open(tmp_path)) as store:
        assert len(store.damage()) == 1
        assert store.records().damaged == tuple(store.damage())


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"this is not a database, whatever its name says" * 100)
    line = refused(tmp_path)
    assert line.startswith(f"{tmp_path / STORE_FILE}: damaged: ")
    assert "`tiebreak run`" in line


def test_a_truncated_database_is_refused_or_named(tmp_path: Path) -> None:
    with closing(Store.create(tmp_path)) as store:
        fill(store)
    path = tmp_path / STORE_FILE
    whole = path.read_bytes()
    for size in range(1, len(whole), 1999):
        path.write_bytes(whole[:size])
        found = complaints(tmp_path)
        assert found
        assert not any("\n" in line for line in found)


@pytest.mark.parametrize("version", [5, 99])
def test_a_store_of_a_newer_tiebreak_is_refused(tmp_path: Path, version: int) -> None:
    with closing(Store.create(tmp_path)) as store:
        fill(store)
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as connection:
        connection.execute(f"PRAGMA user_version={version}")
        connection.execute(f"PRAGMA application_id={APPLICATION + version}")
    line = refused(tmp_path)
    assert "another version of Tiebreak" in line
    assert f"schema {version}" in line


def test_a_version_that_was_damaged_is_not_taken_for_a_newer_one(tmp_path: Path) -> None:
    with closing(Store.create(tmp_path)) as store:
        fill(store)
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as connection:
        connection.execute("PRAGMA user_version=5")
    line = refused(tmp_path)
    assert "damaged" in line
    assert "schema 5" in line


@pytest.mark.parametrize("way", ["removed", "replaced", "with its folder"])
def test_a_writer_whose_file_is_gone_stops_and_says_what_is_lost(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with closing(Store.create(folder)) as store:
        fill(store)
        if way == "with its folder":
            shutil.rmtree(folder)
        else:
            (folder / STORE_FILE).unlink()
        if way == "replaced":
            Store.create(folder).close()
        with pytest.raises(TiebreakError, match=r"records\.sqlite: removed or replaced.*lost") as caught:
            fill(store)
    assert "\n" not in str(caught.value)
    assert ("1 ended run, 1 epoch" in str(caught.value)) is (way != "replaced")


def test_a_folder_without_a_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"no records\.sqlite; is this the --out folder"):
        Store.open(tmp_path)
    with pytest.raises(TiebreakError, match=r"nowhere.*--out"):
        Store.create(tmp_path / "nowhere")


def test_a_reader_cannot_write(tmp_path: Path, store: Store) -> None:
    fill(store)
    with closing(Store.open(tmp_path)) as reader, pytest.raises(TiebreakError, match="readonly"), reader.transaction():
        reader.add_run(RUN)


def test_a_reader_neither_waits_for_a_transaction_nor_sees_half_of_it(tmp_path: Path, store: Store) -> None:
    with store.transaction():
        store.add_epoch(EPOCH)
        store.add_run(RUN)
        with closing(Store.open(tmp_path)) as reader:
            records = reader.records()  # a blocked reader would raise when its time to wait is over
        assert not records.epochs
        assert not records.runs
    with closing(Store.open(tmp_path)) as reader:
        assert reader.records().runs == {"run": RUN}


def test_a_reader_sees_one_moment_even_when_it_reads_several_tables(tmp_path: Path, store: Store) -> None:
    with closing(Store.open(tmp_path)) as reader:

        def writer_is_quicker(statement: str) -> None:
            if "FROM runs" in statement and not store.records().runs:
                fill(store)

        reader._connection.set_trace_callback(writer_is_quicker)
        records = reader.records()
        assert store.records().runs
        assert not records.epochs
        assert not records.runs  # a finished run without its epochs would be half a result
        assert not records.finals
        assert reader.records().runs == {"run": RUN}


def test_an_open_reader_does_not_stop_the_writer(tmp_path: Path, store: Store) -> None:
    with closing(Store.open(tmp_path)) as reader:
        reader.records()
        fill(store)
        assert reader.records().runs == {"run": RUN}


def test_an_exception_leaves_nothing_of_its_transaction(store: Store) -> None:
    def broken() -> None:
        with store.transaction():
            store.add_epoch(EPOCH)
            store.add_run(RUN)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert not store.records().epochs
    assert not store.records().runs
    fill(store)
    assert store.records().runs == {"run": RUN}


def test_a_killed_writer_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False).returncode == -9
    with closing(Store.create(tmp_path)) as store:
        assert list(store.records().runs) == ["kept"]
        assert store.damage() == []
        fill(store)

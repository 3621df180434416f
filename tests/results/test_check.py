from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from support import hand_made
from support.hand_made import EPOCH, FINAL, RUN
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.check import check
from tiebreak.results.checkpoint_file import CHECKPOINTS, POSITION
from tiebreak.results.record import CheckpointRecord
from tiebreak.results.store import STORE_FILE, Store

STATE = safetensors.numpy.save({POSITION: np.array([1, 12])}, {"run": "cnn default seed 0 (run)"})


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A results folder with 12 planned runs, 3 records and 1 checkpoint."""
    plan = hand_made.plan(hand_made.study())
    (tmp_path / PLAN_FILE).write_text(plan.model_dump_json())
    (tmp_path / CHECKPOINTS).mkdir()
    (tmp_path / CHECKPOINTS / "run-1.safetensors").write_bytes(STATE)
    record = CheckpointRecord(
        identity="run",
        trajectory="path",
        epoch=1,
        file="run-1.safetensors",
        sha256=hashlib.sha256(STATE).hexdigest(),
    )
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_epoch(EPOCH)
        store.add_run(RUN)
        store.add_final(FINAL)
        store.add_checkpoint(record)
    return tmp_path


def test_a_folder_as_it_was_written_has_no_problems(folder: Path) -> None:
    assert check(folder)[:2] == (17, [])


def test_a_changed_checkpoint_is_named(folder: Path) -> None:
    path = folder / CHECKPOINTS / "run-1.safetensors"
    path.write_bytes(STATE.replace(b"seed 0", b"seed 1"))
    assert check(folder)[:2] == (17, [f"{path}: damaged, its sha256 is not the recorded one"])


def test_a_missing_checkpoint_is_named(folder: Path) -> None:
    path = folder / CHECKPOINTS / "run-1.safetensors"
    path.unlink()
    assert check(folder)[:2] == (17, [f"{path}: missing"])


def test_a_changed_row_is_named(folder: Path) -> None:
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        connection.execute("UPDATE runs SET content = replace(content, 'done', 'dona')")
    (problem,) = check(folder).problems
    assert "table runs, run path: damaged" in problem


def test_a_plan_that_was_changed_by_hand_is_named(folder: Path) -> None:
    path = folder / PLAN_FILE
    path.write_text(path.read_text().replace('"seed":2', '"seed":3', 1))
    (problem,) = check(folder).problems
    assert "was changed by hand" in problem


def test_all_problems_are_told_at_once(folder: Path) -> None:
    (folder / PLAN_FILE).write_text("{}")
    (folder / CHECKPOINTS / "run-1.safetensors").unlink()
    problems = check(folder).problems
    assert len(problems) == 2
    assert not any("\n" in problem for problem in problems)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="is this the --out folder"):
        check(tmp_path)
    with pytest.raises(TiebreakError, match="gone: no such folder"):  # as every other command
        check(tmp_path / "gone")

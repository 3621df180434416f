from __future__ import annotations

import dataclasses
import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from support.hand_made import RUN
from tiebreak.results.connection import log_of
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.write_log import log_problem


@pytest.fixture(name="killed")
def _killed(tmp_path: Path) -> Path:
    """A store with a log of several transactions, as a kill would leave it."""
    (tmp_path / "live").mkdir()
    with closing(Store.create(tmp_path / "live")) as store:
        for name in ("one", "two", "three"):
            with store.transaction():
                store.add_run(dataclasses.replace(RUN, identity=name))
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    return tmp_path / "killed" / STORE_FILE


def runs(store: Path) -> int:
    with closing(Store.open(store.parent)) as opened:
        return len(opened.records().runs)


def test_an_intact_log_has_no_problem(killed: Path) -> None:
    assert log_problem(log_of(killed)) == ""
    before = log_of(killed).read_bytes()
    assert runs(killed) == 3
    assert log_of(killed).read_bytes() == before  # a reader leaves it
    assert log_problem(killed.with_name("nothing-wal")) == ""


def test_a_log_is_reused_without_an_alarm(tmp_path: Path) -> None:
    """After a checkpoint the log begins anew; older frames stay behind the new ones."""
    with closing(Store.create(tmp_path)) as store:
        for index in range(30):
            with store.transaction():
                store.add_run(dataclasses.replace(RUN, identity=str(index)))
            if index == 20:
                store._connection.execute("PRAGMA wal_checkpoint(RESTART)")
            assert log_problem(log_of(tmp_path / STORE_FILE)) == ""


def test_a_transaction_that_was_not_finished_is_no_damage(killed: Path) -> None:
    log = log_of(killed)
    log.write_bytes(log.read_bytes() + b"half a frame")
    assert log_problem(log) == ""


def test_every_flip_that_loses_a_transaction_is_named(killed: Path) -> None:
    log, chance = log_of(killed), random.Random(0)
    whole, store = log.read_bytes(), killed.read_bytes()
    for _ in range(40):
        content = bytearray(whole)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        log.write_bytes(content)
        named = log_problem(log)
        try:
            left = runs(killed)
        except ValueError:
            left = 0
        assert (str(log) in named) or left == 3
        for path in killed.parent.glob(f"{STORE_FILE}*"):
            path.unlink()
        killed.write_bytes(store)

from __future__ import annotations

import hashlib
import time
from contextlib import closing
from pathlib import Path

import pytest

from support.hand_made import RUN
from tiebreak.results.seal import SEAL_FILE, seal, seal_problem
from tiebreak.results.store import STORE_FILE, Store


def test_a_closed_store_is_sealed_and_a_writer_breaks_the_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    path = tmp_path / STORE_FILE
    with closing(Store.create(tmp_path)) as store:
        seal(path)
        assert not (tmp_path / SEAL_FILE).exists()  # somebody writes
        with store.transaction():
            store.add_run(RUN)
    assert seal_problem(path) == ""
    seal(path)
    digest, name = (tmp_path / SEAL_FILE).read_text().split()
    assert (digest, name) == (hashlib.sha256(path.read_bytes()).hexdigest(), STORE_FILE)
    with closing(Store.open(tmp_path)) as store:
        assert store.damage() == []
    assert seal_problem(path) == ""  # a reader changes nothing
    Store.create(tmp_path).close()
    assert not (tmp_path / SEAL_FILE).exists()


def test_a_reader_that_was_there_when_the_writer_left_only_delays_the_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Store.create(tmp_path)
    with writer.transaction():
        writer.add_run(RUN)
    reader = Store.open(tmp_path)
    with reader.transaction("DEFERRED"):
        reader.looks()
        writer.close()
        monkeypatch.setattr(time, "sleep", lambda _: None)
        seal(tmp_path / STORE_FILE)
        assert not (tmp_path / SEAL_FILE).exists()
    monkeypatch.setattr(time, "sleep", lambda _: reader.close())
    seal(tmp_path / STORE_FILE)
    assert seal_problem(tmp_path / STORE_FILE) == ""
    assert (tmp_path / SEAL_FILE).exists()


def test_a_byte_that_holds_no_row_is_covered(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    Store.create(tmp_path).close()
    seal(path)
    content = bytearray(path.read_bytes())
    place = content.index(bytes(64))
    content[place + 32] = 1
    path.write_bytes(content)
    assert f"{path}: damaged" in seal_problem(path)
    with closing(Store.open(tmp_path)) as store:
        assert store.damage() == [seal_problem(path)]

"""The log of a run: what the program prints, and no more of it than the limit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiebreak.program import output_log
from tiebreak.program.output_log import OutputLog


def written(path: Path, *pieces: bytes) -> bytes:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        log = OutputLog(pipe, path)
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)
        log.finish()
    return path.read_bytes()


def test_output_is_added_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before\n")
    assert written(tmp_path / "log", b"one\n", b"two\n") == b"before\none\ntwo\n"


def test_much_output_keeps_its_beginning_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"HEAD_BYTES": 20, "MOST_BYTES": 300, "LAST_BYTES": 50, "PIECE_BYTES": 10}.items():
        monkeypatch.setattr(output_log, name, size)
    lines = [b"line %04d\n" % number for number in range(2000)]
    (tmp_path / "log").write_bytes(b"before\n")
    found = written(tmp_path / "log", *lines)
    assert found.startswith(b"before\nline 0000\n")
    assert found.endswith(b"line 1998\nline 1999\n")
    assert b"left out" in found
    assert len(found) < 500

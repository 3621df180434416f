"""`tiebreak watch` and `run --watch`: one line for bad input; one process that serves until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support import watched
from support.cli_fixtures import Tiebreak
from tiebreak.system import python


def test_a_process_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "runs" / "one", ended=2)
    watched.make_folder(tmp_path / "runs" / "two", ended=3)
    command = [*python("tiebreak"), "watch", str(tmp_path / "runs"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(word for word in process.stdout.readline().split() if word.startswith("http://127.0.0.1:"))
        with urllib.request.urlopen(f"{address}api/studies") as answer:
            assert len(json.load(answer)["studies"]) == 2
        with urllib.request.urlopen(f"{address}api/events") as stream:
            lines = [stream.readline().decode() for _ in range(3)]
            process.send_signal(signal.SIGINT)  # while a client listens
            process.wait()
    assert [line.partition(":")[0] for line in lines] == ["event", "id", "data"]
    assert process.returncode == 0


@pytest.mark.parametrize("name", ["nothing", "a file"])
def test_what_is_no_folder_is_refused(tiebreak: Tiebreak, tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").write_text("")
    done = tiebreak("watch", tmp_path / name)
    assert done.code == 2
    assert str(tmp_path / name) in done.err


def test_scores_without_runs_are_refused(tiebreak: Tiebreak, tmp_path: Path) -> None:
    for name in ("scores.csv", "verdict.json"):
        (tmp_path / name).write_text("")
    done = tiebreak("watch", tmp_path, "--host", "192.0.2.1")  # so that it ends in any case
    assert done.code == 2
    assert "tiebreak compare" in done.err


@pytest.mark.parametrize("command", [("watch", "."), ("run", "pooling", "--watch")])
def test_without_the_libraries_the_extra_is_named(
    tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = tiebreak(*command)
    assert done.code == 2
    assert "tiebreak[web]" in done.err


def test_a_port_without_the_page_is_refused(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("run", "pooling", "--quick", "--out", tmp_path / "out", "--port", 9000)
    assert done.code == 2
    assert "--watch" in done.err
    assert not (tmp_path / "out").exists()

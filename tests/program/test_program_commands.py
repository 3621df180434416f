"""Studies of a program on the command line, from the plan to the result; bad input is one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import own_program
from support.cli_fixtures import Tiebreak
from support.own_program import how
from tiebreak.api import open_result
from tiebreak.results.record import PROGRAM_RUNS


def test_a_study_of_a_program_from_the_command_to_the_result(
    tmp_path: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    grid = {"grid": {"n": [1, 2]}, "seeds": 2}
    changes = how("crash", **grid)
    changes["program"] = {"command": [*changes["program"]["command"], "{n}"], "epochs": "metrics.jsonl"}
    path, out = own_program.write(tmp_path, **changes), tmp_path / "out"
    planned = tiebreak("plan", path)
    assert (planned.code, "NOT checked: data and split" in planned.out) == (0, True)
    done = tiebreak("run", path, "--out", out, "--allow-program")
    assert done.code == 0, done.err
    assert "out of luck" in done.out
    status = tiebreak("status", out)
    assert "out of luck" in status.out
    assert "program-runs" in status.out
    assert tiebreak("check", out).code == 0
    assert tiebreak("use", out, "x").code == 2
    result = open_result(out)
    assert {row["status"] for row in result.rows} == {"done", "failed"}
    assert {"n", "accuracy", "val_accuracy", "loss"} <= set(result.rows[0])
    assert any("failed" in line for line in result.verdict.warnings)
    assert "out of luck" in result.report.read_text()


def test_a_study_without_any_score_exits_with_1_and_still_has_a_report(
    tmp_path: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    done = tiebreak(
        "run", own_program.write(tmp_path, **how("malformed")), "--out", tmp_path / "out", "--allow-program"
    )
    assert done.code == 1
    assert "undecided" in done.out
    assert open_result(tmp_path / "out").report.is_file()


@pytest.mark.parametrize(
    ("changes", "arguments", "word"),
    [
        ({"program": {"command": ["no-such-program", "{good}", "{seed}", "{out}"]}}, (), "program.command[1]"),
        ({"program": {"command": [*own_program.COMMAND, "{lr}"]}}, (), "program.command[8]"),
        ({}, ("--epochs", "3"), "--epochs"),
        ({}, ("--device", "cuda"), "--device"),
        (how("other"), (), "no test.accuracy"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    tiebreak: Tiebreak,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, object],
    arguments: tuple[str, ...],
    word: str,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path, out = own_program.write(tmp_path, **changes), tmp_path / "out"
    done = tiebreak("run", path, "--out", out, "--allow-program", *arguments)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert word in done.err
    if "program.command" in word:
        assert str(path) in done.err
    if "test.accuracy" not in word:
        assert not out.exists()


def test_killed_between_batches_a_growing_study_continues_and_counts_each_look_once(
    tmp_path: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tiebreak run --until-decided` in a process of its own: `kill -9` in the second batch, then the same command."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    arms = [{"name": "high", "with": {"good": 0.9}}, {"name": "low", "with": {"good": 0.8985}}]
    changes = how("sleep-once", arms=arms, margin=0.0001)
    path, out = own_program.write(tmp_path, **changes), tmp_path / "out"
    (tmp_path / "toy.py").write_text(own_program.PROGRAM.replace("good > 0.8 ", "good > 0.899 and seed == 7 "))
    options = ("--out", out, "--allow-program", "--until-decided", "--max-seeds", 9)
    command = [sys.executable, "-m", "tiebreak", "run", *map(str, (path, *options))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        while not list((out / PROGRAM_RUNS).glob("*/child")):
            assert first.poll() is None
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
    assert seeds_of_looks(out) == [6]
    assert "Not final" in open_result(out).verdict.answer
    for _ in range(2):  # a finished study is not looked at again
        done = tiebreak("run", path, *options)
        assert done.code == 0, done.err
        assert seeds_of_looks(out) == [6, 9]
    verdict = open_result(out).verdict
    assert verdict.stopping is not None
    assert (verdict.stopping.reason, verdict.stopping.looks, verdict.primary.verdict) == ("decided", (6, 9), "a")
    assert [look.seeds for look in verdict.primary.path] == [6, 9]


def seeds_of_looks(folder: Path) -> list[int]:
    return [look.seeds for look in open_result(folder).records.looks]

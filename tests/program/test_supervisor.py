"""The supervisor: it says how a program ended, and leaves nothing of it behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from tiebreak.program.launch import Launched
from tiebreak.program.supervisor import Order

LEAVES = "import subprocess, sys, time; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
LEAVES += "open('child', 'w').write(str(c.pid))"
SLEEP = f"{LEAVES}; time.sleep(600)"


def order(folder: Path, *code: str, timeout: float | None = None) -> Order:
    return Order(
        command=[sys.executable, "-I", "-S", "-c", *code],
        folder=str(folder),
        environment={"COLOUR": "red"},
        log=str(folder / "log"),
        process_file=str(folder / "process"),
        timeout=timeout,
    )


def wait_for(path: Path) -> str:
    for _ in range(600):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path} was not written")


def is_gone(pid: int) -> bool:
    """Whether the process ends: a zombie that nobody reaps has ended."""
    for _ in range(600):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_output_and_exit_code(tmp_path: Path) -> None:
    ended = Launched(order(tmp_path, "import os, sys; print(os.environ['COLOUR']); sys.exit(3)")).wait()
    assert (ended.code, ended.timed_out, ended.problem) == (3, False, "")
    assert (tmp_path / "log").read_text() == "red\n"
    assert not (tmp_path / "process").exists()


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    made = Order(**{**vars(order(tmp_path)), "command": ["/no/such/program"]})
    assert "/no/such/program" in Launched(made).wait().problem


def test_the_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    ended = Launched(order(tmp_path, SLEEP, timeout=1.0)).wait()
    assert ended.timed_out
    assert is_gone(int(wait_for(tmp_path / "child")))


def test_what_outlives_the_program_is_ended(tmp_path: Path) -> None:
    ended = Launched(order(tmp_path, LEAVES)).wait()
    assert ended.code == 0
    assert is_gone(int((tmp_path / "child").read_text()))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux hands orphans to the supervisor")
def test_what_has_left_the_group_is_ended_too(tmp_path: Path) -> None:
    ended = Launched(order(tmp_path, LEAVES.replace("'])", "'], start_new_session=True)"))).wait()
    assert ended.code == 0
    assert is_gone(int((tmp_path / "child").read_text()))


def test_the_program_ends_when_the_driver_lets_go(tmp_path: Path) -> None:
    launched = Launched(order(tmp_path, SLEEP))
    child = int(wait_for(tmp_path / "child"))
    program = int(wait_for(tmp_path / "process"))
    launched.stop()
    launched.wait()
    assert is_gone(program)
    assert is_gone(child)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a process with its parent")
def test_the_program_ends_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    launched = Launched(order(tmp_path, "import time; time.sleep(600)"))
    program = int(wait_for(tmp_path / "process"))
    launched._process.kill()
    assert "supervises" in launched.wait().problem
    assert is_gone(program)  # what it has started itself is found by `RunFolder.end_leftover`

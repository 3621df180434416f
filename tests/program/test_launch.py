"""The command of a run, with its values put in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support import own_program
from tiebreak.plan.planner import make_plan
from tiebreak.program.launch import command_line, other_python


def test_values_are_put_in(tmp_path: Path) -> None:
    command = ["{python}", "-I", "-S", "toy.py", "{good}", "--seed={seed}", "{out}/x", "{n}", "{arm}", "{{}}"]
    made = own_program.study(tmp_path, program={"command": command}, grid={"n": [32, 0.5]})
    plan = make_plan(made, None)
    run = plan.runs[plan.arm("low").run({"n": 32}, 1)]
    line = command_line(made, made.arm("low"), run, Path("/o"))
    assert line == [sys.executable, "-I", "-S", "toy.py", "0.5", "--seed=1", "/o/x", "32", "low", "{}"]


def test_a_function_is_called_by_a_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def train(seed, good): ...\n")
    made = own_program.study(tmp_path, program={"command": None, "function": "mine:train"})
    line = command_line(made, made.arm("high"), own_program.one_run(made), Path("/o"))
    call = json.loads(line[-1])
    assert (call["function"], call["values"], call["seed"]) == ("mine:train", {"good": 0.9}, 0)


def test_another_python_than_ours_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert other_python(own_program.study(tmp_path)) == ""
    made = own_program.study(tmp_path, program={"command": ["python3", *own_program.COMMAND[1:]]})
    for folder in ("ours", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python3").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "ours" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "ours"))
    assert other_python(made) == ""
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert "{python}" in other_python(made)

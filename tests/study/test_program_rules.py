"""Studies of programs that must be refused: one line with the key, what is wrong, and what to do."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from support import own_program, tiny
from support.own_program import COMMAND
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.program_rules import check_exists, program_line
from tiebreak.study.schema import Study

HIGH, LOW = own_program.content()["arms"]
NAMED = [*COMMAND[:4], "{arm}", "{seed}", "{out}"]
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"program": {"command": None}}, "program.command", "required"),
    ({"program": {"command": [*COMMAND, "{lrr}"]}, "grid": {"lr": [1]}}, "program.command[8]", "'lr'"),
    ({"program": {"command": [*COMMAND, "{lr}"]}}, "program.command[8]", "'high'"),
    ({"program": {"command": [*COMMAND, "{lr"]}}, "program.command[8]", "brace"),
    ({"program": {"command": [*COMMAND, "\0"]}}, "program.command[8]", "NUL"),
    ({"program": {"command": "python train.py"}}, "program.command", "list"),
    ({"program": {"command": []}}, "program.command", "empty"),
    ({"program": {"command": [*COMMAND[:5], "{out}"]}}, "program.command", "{seed}"),
    ({"program": {"command": [*COMMAND[:5], "{seed}"]}}, "program.command", "{out}"),
    ({"grid": {"lr": [0.1]}}, "grid.lr", "{lr}"),
    ({"grid": {"seed": [1, 2]}}, "grid.seed", "another name"),
    ({"grid": {"good": [1, 2]}}, "arms[1].with.good", "grid"),
    ({"arms": [{**HIGH, "with": {"good": 1, "width": 2}}, LOW]}, "program", "{width}"),
    ({"arms": [{**HIGH, "with": {"good": [1]}}, LOW]}, "arms[1].with.good", "number"),
    ({"arms": [{**HIGH, "with": {"out": 1}}, LOW]}, "arms[1].with.out", "another name"),
    ({"arms": [HIGH, {**HIGH, "name": "low"}]}, "arms[2]", "same"),
    ({"arms": [{**HIGH, "design": "cnn-pool"}, LOW]}, "arms[1].design", "program"),
    ({"arms": [{**HIGH, "epochs_times": 2}, LOW]}, "arms[1].epochs_times", "program"),
    ({"arms": [{**HIGH, "wth": {}}, LOW]}, "arms[1]", "'with'"),
    ({"fixed": {"lr": 0.1}}, "fixed", "program"),
    ({"budget": {"epochs": 3, "batch": 8}}, "budget", "program"),
    ({"quick": {"epochs": 1}}, "quick.epochs", "program"),
    ({"program": {"scores": "/etc/passwd"}}, "program.scores", "{out}"),
    ({"program": {"outcomes": "../x.npz"}}, "program.outcomes", "{out}"),
    ({"program": {"gpus": 1.5}}, "program.gpus", "whole"),
    ({"program": {"cores": 0}}, "program.cores", "1"),
    ({"program": {"comand": COMMAND}}, "program", "'command'"),
    ({"program": {"function": "a:b"}}, "program", "function"),
    ({"task": "programm"}, "task", "'program'"),
    ({"comparisons": [{"a": "high", "b": "lower"}]}, "comparisons[1].b", "'low'"),
    ({"comparisons": [{"a": "high", "b": "low", "metric": "magic", "margin": 1.0}]}, "comparisons[1].metric", "magic"),
]


@pytest.mark.parametrize(("changes", "key", "word"), BAD)
def test_bad_studies(changes: dict[str, Any], key: str, word: str) -> None:
    with pytest.raises(TiebreakError) as error:
        own_program.checked(**changes)
    assert str(error.value).startswith(f"toy.toml: {key}: "), error.value
    assert word in str(error.value)


def test_a_program_needs_its_task() -> None:
    with pytest.raises(TiebreakError, match=r"program: only with task"):
        parsing.validate(Study, tiny.content(program={"command": COMMAND}), "x.toml")


@pytest.mark.parametrize(
    ("command", "key", "word"),
    [
        (["no-such-program", *COMMAND[3:]], "program.command[1]", "PATH"),
        (["./toy.py", *COMMAND[4:]], "program.command[1]", "toy.py"),  # there, but it cannot be run
        (["{python}", "trian.py", *COMMAND[4:]], "program.command[2]", "trian.py"),
        (["bash", "{arm}.sh", *COMMAND[4:]], "program.command[2]", "high.sh"),
    ],
)
def test_a_program_that_is_not_there(tmp_path: Path, command: list[str], key: str, word: str) -> None:
    made = own_program.study(tmp_path, program={"command": command})
    with pytest.raises(ValueError, match=key.replace("[", r"\[")) as error:
        check_exists(made)
    assert word in str(error.value)


def test_what_is_there_is_accepted(tmp_path: Path) -> None:
    check_exists(own_program.study(tmp_path))
    own = [HIGH, {**LOW, "command": ["{python}", "-m", "module", *COMMAND[4:]]}]
    made = own_program.study(tmp_path, arms=own)
    check_exists(made)
    assert program_line(made, made.arm("low")).startswith("'{python}' -m module")


def test_a_resolved_study_is_read_back(tmp_path: Path) -> None:
    made = own_program.study(tmp_path, grid={"n": [1, 2.5]}, program={"command": [*COMMAND, "{n}"]})
    text = parsing.to_toml(made)
    again = parsing.validate(Study, tomllib.loads(text), "study.toml")
    assert again == made
    assert [type(setting["n"]) for setting in again.settings()] == [int, float]
    assert tomllib.loads(text)["program"]["folder"] == str(tmp_path)
    named = {"arms": [{"name": "a"}, {"name": "b"}], "comparisons": [{"a": "a", "b": "b"}]}
    assert own_program.checked(program={"command": NAMED}, **named)


def test_options_of_networks_are_refused(tmp_path: Path) -> None:
    made = own_program.study(tmp_path, quick={"seeds": 1})
    assert made.quickened().seeds == 1
    for changes in ({"data": "mnist"}, {"epochs": 3}):
        with pytest.raises(TiebreakError, match=f"--{next(iter(changes))}"):
            made.changed(**changes)

"""The command line as a whole: help, light imports, what cannot be understood."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata

import pytest

from support.cli_fixtures import Tiebreak, one_line
from tiebreak.cli import app, data_commands

COMMANDS = [item.callback for app in (app.app, data_commands.data_app) for item in app.registered_commands]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_help_of_every_command_says_what_it_does(command: Callable[..., None], tiebreak: Tiebreak) -> None:
    done = tiebreak(*command.__name__.split("_"), "--help")
    assert (done.code, done.err) == (0, "")
    assert command.__doc__ is not None
    shown = one_line(re.sub(r"[│╭╮╰╯─]", " ", done.out)).replace("`", "")
    assert one_line(command.__doc__.split("\n")[0]).replace("`", "") in shown
    assert "--help" in shown


def test_help_of_all_names_every_command(tiebreak: Tiebreak) -> None:
    shown = tiebreak("--help").out
    commands = [item.name or getattr(item.callback, "__name__", "") for item in app.app.registered_commands]
    for name in (*commands, "data"):
        assert re.search(rf"│ {name}\s", shown)
    assert "tiebreak run pooling --quick" in shown


@pytest.mark.parametrize("arguments", [[], ["data"]], ids=["none", "data"])
def test_no_command_shows_the_help(arguments: list[str], tiebreak: Tiebreak) -> None:
    done = tiebreak(*arguments)
    assert "Usage" in done.out + done.err
    assert "tiebreak: " not in done.err


def test_the_version_is_that_of_the_package(tiebreak: Tiebreak) -> None:
    assert tiebreak("--version") == (0, f"tiebreak {metadata.version('tiebreak')}\n", "")


@pytest.mark.parametrize("arguments", [["--help"], ["studies"], ["data", "list"]], ids=" ".join)
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['tiebreak', *{arguments}]\n"
        "from tiebreak.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print([name for name in ('torch', 'scipy.stats', 'matplotlib', 'sympy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["rnu"],
        ["run"],
        ["run", "pooling", "--workers", "0"],
        ["run", "pooling", "--device", "tpu"],
        ["run", "pooling", "--sedes", "1"],
        ["plan", "pooling", "--seeds", "many"],
        ["run", "pooling", "--strategy", "fast"],
        ["run", "pooling", "--precision", "fp8"],
        ["run", "pooling", "kuzushiji"],
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_understood_is_one_line_and_code_2(arguments: list[str], tiebreak: Tiebreak) -> None:
    done = tiebreak(*arguments)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"tiebreak: [^\n]+; see tiebreak( run| plan)? --help\n", done.err)


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m tiebreak data list | true"  # the reader is gone before anything is written
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""

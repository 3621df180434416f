"""Fixtures for tests of the command line: calling it, and a small study that it has run."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import pytest
import tomli_w

from support import tiny
from support.command_line import Done, call, call_once

Tiebreak = Callable[..., Done]


@pytest.fixture
def tiebreak(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> Tiebreak:
    """The command line in this process, without data of this machine's user, on a terminal of 100 columns."""
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path_factory.getbasetemp() / "no-cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return functools.partial(call, monkeypatch, capsys)


def process(*arguments: object, python: tuple[str, ...] = ()) -> Done:
    """The command line in a process of its own."""
    command = [sys.executable, *python, "-m", "tiebreak", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def write_study(folder: Path, **changes: Any) -> Path:
    """The small study as a file."""
    content = tiny.content(**changes)
    path = folder / f"{content['name']}.toml"
    path.write_text(tomli_w.dumps(content), "utf-8")
    return path


def one_line(text: str) -> str:
    """Text as it was before the terminal broke its lines."""
    return " ".join(text.split())


class Finished(NamedTuple):
    """A study that was run, and how the first `tiebreak run` ended."""

    study: Path
    data: Path
    folder: Path
    first: Done

    def again(self) -> tuple[object, ...]:
        """The arguments of the same command once more."""
        return ("run", self.study, "--data-dir", self.data, "--out", self.folder, "--workers", 1)


@pytest.fixture(scope="session")
def finished(tiny_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The small study, run by `tiebreak run` without worker processes."""
    from support.small_study import workers_here

    folder = tmp_path_factory.mktemp("cli")
    made = Finished(write_study(folder), tiny_data_dir, folder / "out", Done(0, "", ""))
    with workers_here():
        return made._replace(first=call_once(*made.again()))


@pytest.fixture
def folder(finished: Finished, tmp_path: Path) -> Path:
    """The finished results, for a test to change."""
    return copytree(finished.folder, tmp_path / "out")

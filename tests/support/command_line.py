"""The command line called in this process, as the console script calls it."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from tiebreak.cli import app


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> Done:
    """`tiebreak ARGUMENTS`; it ends with SystemExit as the console script does."""
    monkeypatch.setattr(sys, "argv", ["tiebreak", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    printed = capsys.readouterr()
    return Done(int(ended.value.code or 0), printed.out, printed.err)


def call_once(*arguments: object, columns: int = 100) -> Done:
    """The same for a fixture that several tests share, which has no `capsys`."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "argv", ["tiebreak", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())

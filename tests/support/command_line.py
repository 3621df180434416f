"""The command line called in this process, as the console script calls it."""

from __future__ import annotations

import sys
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

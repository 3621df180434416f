"""The question before a program runs: only on a terminal, and only once."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from support import own_program
from tiebreak.cli.ask import asked
from tiebreak.program.consent import require_consent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "allowed"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_the_answer_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, allowed: bool
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = own_program.study(tmp_path)
    assert not asked(made)  # not a terminal: nobody is asked
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert asked(made) is allowed
    assert "toy.py" in capsys.readouterr().out
    require_consent(made, allow=True)
    assert not asked(made)  # it is remembered

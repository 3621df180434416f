"""The console: styles are its own, control characters of any text are escaped."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from tiebreak.report.terminal.safe_console import SafeConsole

HOSTILE = "\x1b]0;owned\x07\x9b31m\u202e\x7f"


def printed(*what: object, terminal: bool = False) -> str:
    buffer = io.StringIO()
    SafeConsole(file=buffer, width=100, force_terminal=terminal).print(*what)
    return buffer.getvalue()


@given(st.text())
def test_no_control_character_is_printed(text: str) -> None:
    for renderable in (Text(text), f"[bold]{text.replace('[', '')}"):
        assert printed(renderable).replace("\n", "").isprintable()


@pytest.mark.parametrize("terminal", [False, True])
def test_tables_are_safe_and_styles_stay(terminal: bool) -> None:
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(Text(HOSTILE, style="bold"))
    text = printed(table, terminal=terminal)
    assert "owned" in text
    assert not set("\x07\x9b\u202e\x7f") & set(text)
    assert "\x1b]" not in text
    assert ("\x1b[1m" in text) == terminal

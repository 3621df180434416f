"""Pieces of text: the examples of the docstrings, and names that may hold anything."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from tiebreak import text


def test_the_examples_in_docstrings_are_true() -> None:
    result = doctest.testmod(text)
    assert result.attempted > 0
    assert result.failed == 0


@given(st.text())
def test_nothing_that_drives_a_terminal_gets_through(name: str) -> None:
    shown = text.printable(name)
    assert shown.isprintable()
    assert "\n" not in shown


@given(st.text(), st.integers(1, 40))
def test_a_shortened_text_is_no_longer_than_asked(content: str, length: int) -> None:
    assert len(text.shorten(content, length)) <= max(length, 2)

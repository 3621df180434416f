"""The exception for user errors: one line with what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TiebreakError(ValueError):
    """A mistake in a file, an option or the environment. The command line prints it and exits with code 2."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint for a mistyped name: the nearest valid one, or all of them if none is near."""
    known = sorted(valid)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"valid: {', '.join(known)}" if known else "no name is valid here"

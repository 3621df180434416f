"""Lines of the command line, the one place where they leave: text of any origin, control characters escaped.

Styled output goes through `report.terminal.safe_console`, which does the same.
"""

from __future__ import annotations

import sys

from tiebreak.text import one_line, printable, printable_json


def print_line(text: object) -> None:
    """Print one line."""
    print(printable(text))


def print_json(text: str) -> None:
    """Print JSON as it is, but with control characters escaped."""
    print(printable_json(text), end="" if text.endswith("\n") else "\n")


def print_error(text: object) -> None:
    """Print one line to standard error. A very long one is cut in the middle: its end says what to do."""
    print(f"tiebreak: {one_line(text)}", file=sys.stderr, flush=True)

"""Lines of the command line, the one place where they leave: text of any origin, control characters escaped.

Styled output goes through `report.terminal.safe_console`, which does the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

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


REASONS = {  # what a parser says of a value: what we say
    r"(Value error, )?.* is not one of (?P<values>.*)": "should be one of {values}",
    r"Input should be a valid integer.*|.* is not a valid int\w*": "should be a whole number",
    r"Input should be a valid number.*|.* is not a valid float\w*": "should be a number",
    r"Input should be greater than or equal to (?P<least>\S+)|.* is not in the range x>=(?P<low>\S+)": (
        "should be at least {least}{low}"
    ),
    r"Input should be less than or equal to (?P<most>\S+)": "should be at most {most}",
}


def usage_error(message: str, arguments: Sequence[str]) -> str:
    """The message of a wrong command line in our words: the option, the value that was given and what is allowed.

    >>> usage_error("Invalid value for '--seeds': Input should be a valid integer, …", ["--seeds", "x"])
    '--seeds x: should be a whole number'
    """
    text = " ".join(message.split()).rstrip(".")
    found = re.fullmatch(r"Invalid value for '(?P<name>[^':]+)[^:]*: (?P<reason>.*)", text)
    for pattern, words in REASONS.items() if found else ():
        reason = re.fullmatch(pattern, found["reason"]) if found else None
        if found and reason:
            parts = {name: (value or "").replace("'", "") for name, value in reason.groupdict().items()}
            return f"{found['name']}{_given(found['name'], arguments)}: {words.format(**parts)}"
    return f"{text[:1].lower()}{text[1:]}"


def _given(option: str, arguments: Sequence[str]) -> str:
    """The value that an option was given, with a space before it; empty where it cannot be found."""
    for place, argument in enumerate(arguments):
        if argument == option and place + 1 < len(arguments):
            return f" {arguments[place + 1]}"
        if argument.startswith(f"{option}="):
            return f" {argument.removeprefix(f'{option}=')}"
    return ""

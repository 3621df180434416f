"""Small pieces of text that every room writes alike: counts with their nouns, lists, names that may hold anything."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

LINE = 500  # characters of a message at most


def number_of(many: int, one: str, more: str | None = None) -> str:
    """A count with its noun.

    >>> number_of(1, "seed"), number_of(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{many:,} {one if many == 1 else more or one + 's'}"


def rounded(value: float, digits: int = 2) -> str:
    """A number with so many significant digits as people write it: never with an exponent.

    >>> rounded(150.3), rounded(12_345, 3), rounded(5.96), rounded(0.0521)
    ('150', '12,300', '6', '0.052')
    """
    if not math.isfinite(value):
        return str(value)
    short = float(f"{value:.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(short)))) if short else 0
    text = f"{short:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def listed(items: Sequence[str]) -> str:
    """Several names as a reader expects them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def printable(content: object) -> str:
    r"""Text of unknown origin (a file name, a label) in one line: white space becomes a space, controls are escaped.

    Control characters could drive a terminal or break a figure.

    >>> printable("two\nlines"), printable("\x1b[31mred")
    ('two lines', '\\x1b[31mred')
    """
    return "".join(letter if letter.isprintable() else _shown(letter) for letter in str(content))


def _shown(letter: str) -> str:
    return " " if letter.isspace() else ascii(letter)[1:-1]


def encodable(content: str) -> str:
    r"""Text that UTF-8 can hold: halves of a surrogate pair become visible escapes.

    They come with file names that are not UTF-8, and with JSON.

    >>> encodable("caf\udce9")
    'caf\\udce9'
    """
    return content if content.isascii() else content.encode("utf-8", "backslashreplace").decode()


def shorten(content: str, length: int) -> str:
    """The text, cut with an ellipsis where it is longer than `length`."""
    return content if len(content) <= length else content[: max(length - 1, 1)].rstrip() + "…"


def one_line(content: object, length: int = LINE) -> str:
    """Text of unknown origin as one line for a terminal, at most `length` long: the middle of a longer one is left out.

    A message begins with the place and ends with the advice, so both ends matter.

    >>> one_line("0123456789" * 100, 20)
    '0123456789…123456789'
    """
    line = printable(content)
    return line if len(line) <= length else f"{line[: length // 2]}…{line[-(length - length // 2 - 1) :]}"


def printable_json(text: str) -> str:
    r"""JSON text for a terminal: what `printable` would escape becomes an escape of JSON. Line breaks stay.

    >>> printable_json('{"a": "\x9b31m"}')
    '{"a": "\\u009b31m"}'
    """
    return "\n".join(
        line if line.isprintable() else "".join(each if each.isprintable() else _json_escape(each) for each in line)
        for line in text.split("\n")
    )


def _json_escape(letter: str) -> str:
    return json.dumps(letter)[1:-1] if ord(letter) != 0x7F else "\\u007f"  # json leaves DEL as it is

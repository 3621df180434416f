"""Texts as numbers, piece by piece: tokens are numbered as they first occur, and no list of them is ever held as text.

A text of 250 MB has fifty million words; as numbers they take 200 MB, as text several gigabytes. The rules are those
of `tokens`, and `split_text` is the naive twin of what is done here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.text.tokens import END, Level, split_words
from tiebreak.errors import TiebreakError

LIMIT_KINDS = 3_000_000  # of different words: half a gigabyte; a billion words of English have two million
LIMIT_UNBROKEN = 16 << 20  # characters without a blank or a line break
CODE_POINTS = 0x110000

Numbers = NDArray[np.int32]


class _Kinds(dict[str, int]):
    """Gives a token that it does not know the next number."""

    def __missing__(self, token: str) -> int:
        self[token] = number = len(self)
        return number


class Numbering:
    """Numbers the tokens of the texts of one corpus; `where` is for messages."""

    def __init__(self, where: str, level: Level, marks: bool) -> None:
        self._where, self._level, self._marks = where, level, marks
        self._kinds = _Kinds()
        self._characters = np.full(CODE_POINTS if level == "character" else 0, -1, np.int32)

    @property
    def kinds(self) -> list[str]:
        """What each number means."""
        return list(self._kinds)

    def add(self, pieces: Iterable[str]) -> Numbers:
        """The numbers of a text that comes in pieces."""
        numbers = array("i")
        if self._level == "character":
            for piece in pieces:
                numbers.frombytes(self._numbered(piece).tobytes())
        else:
            self._add_words(pieces, numbers)
        return np.frombuffer(numbers, np.int32) if numbers else np.zeros(0, np.int32)

    def _numbered(self, piece: str) -> Numbers:
        codes = np.frombuffer(piece.encode("utf-32-le"), np.uint32)
        numbers = self._characters[codes]
        if (numbers < 0).any():
            for code in np.unique(codes[numbers < 0]).tolist():
                self._characters[code] = self._kinds[chr(code)]
            numbers = self._characters[codes]
        return numbers

    def _add_words(self, pieces: Iterable[str], numbers: array[int]) -> None:
        end, open_line = self._kinds[END], False  # open: the line has words and no end yet
        for part in self._unbroken(pieces):
            for place, line in enumerate(part.split("\n")):
                if place and open_line:
                    numbers.append(end)
                    open_line = False
                if words := split_words(line, self._marks):
                    numbers.extend(map(self._kinds.__getitem__, words))
                    open_line = True
            if len(self._kinds) > LIMIT_KINDS:
                raise TiebreakError(
                    f"{self._where}: more than {LIMIT_KINDS:,} different words: is it text? Use a part of it, or "
                    "level = 'character'"
                )
        if open_line:
            numbers.append(end)

    def _unbroken(self, pieces: Iterable[str]) -> Iterator[str]:
        """The text in parts that end where no word can go on: at a blank or a line break."""
        held: list[str] = []
        length = 0
        for piece in pieces:
            place = max(piece.rfind(" "), piece.rfind("\n"))
            if place >= 0:
                yield "".join((*held, piece[: place + 1]))
                held, length = [], 0
            held.append(piece[place + 1 :])
            length += len(held[-1])
            if length > LIMIT_UNBROKEN:
                raise TiebreakError(
                    f"{self._where}: {length:,} characters without a blank or a line break: is it text? "
                    "Use level = 'character'"
                )
        yield "".join(held)

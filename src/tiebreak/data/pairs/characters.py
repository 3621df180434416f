"""Text as characters: one spelling for the same sentence, and numbers for its characters.

| number        | symbol                                                              |
|---------------|---------------------------------------------------------------------|
| 0 PAD         | after the end, up to the common length                              |
| 1 SOS         | the start of a sentence                                             |
| 2 EOS         | its end                                                             |
| 3 UNK         | a character that no training sentence has                           |
| 4, 5, 6 ...   | the characters of the training sentences, in the order of Unicode   |
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from tiebreak.errors import TiebreakError

PAD, SOS, EOS, UNK = range(4)
SPECIAL = 4  # how many numbers come before the first symbol

_MARK = re.compile(r"([.!?])")
_OTHER = re.compile(r"[^a-z.!?]+")


def normalise(text: str) -> str:
    """Lower case without accents (NFD, no Mn), a space before . ! ?, and one for every run of anything but a to z.

    This is the form of the translation data of the reports: 26 letters, three marks and the space. It fits languages
    written in Latin letters only.

    >>> normalise("¿Qué  pasó, señor?")
    'que paso senor ?'
    """
    if not text.isascii():
        parts = unicodedata.normalize("NFD", text)
        text = "".join(letter for letter in parts if unicodedata.category(letter) != "Mn")
    return _OTHER.sub(" ", _MARK.sub(r" \1", text.lower())).strip()


def tidy(text: str) -> str:
    """Lower case, composed (NFC), one space for every run of white space, none at the ends: right for any language.

    >>> tidy(" Доброе   УТРО! ")
    'доброе утро!'
    """
    return " ".join(unicodedata.normalize("NFC", text.lower()).split())


def symbols(texts: Iterable[str]) -> tuple[str, ...]:
    """The characters that occur, sorted."""
    return tuple(sorted(set().union(*texts)))


def unknown(texts: Iterable[str], symbols: Sequence[str]) -> int:
    """How many characters of the texts are not among the symbols."""
    known = set(symbols)
    return sum(letter not in known for text in texts for letter in text)


def encode(text: str, symbols: Sequence[str], length: int) -> list[int]:
    """SOS, the characters, EOS, and PAD up to `length`, which must be at least two more than the characters.

    >>> encode("caba", ("a", "b"), 8)
    [1, 3, 4, 5, 4, 2, 0, 0]
    """
    if len(text) + 2 > length:
        raise TiebreakError(
            f"a sentence of {len(text)} characters does not fit into {length} tokens with start and end"
        )
    numbers = _numbers(tuple(symbols))
    row = [SOS, *(numbers.get(letter, UNK) for letter in text), EOS]
    return row + [PAD] * (length - len(row))


@lru_cache(maxsize=16)
def _numbers(symbols: tuple[str, ...]) -> Mapping[str, int]:
    return {symbol: number for number, symbol in enumerate(symbols, SPECIAL)}

"""Text as numbers: the 35 symbols of the speech reports, in their order.

| symbols          | numbers | meaning                                  |
|------------------|---------|------------------------------------------|
| `<` `>` `@` `#`  | 0 to 3  | start, end, padding, any other character |
| space `, . ? -`  | 4 to 8  | themselves                               |
| a to z           | 9 to 34 | themselves; capitals become small first  |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from string import ascii_lowercase

SYMBOLS = "<>@# ,.?-" + ascii_lowercase
START, END, PAD, OTHER = range(4)
LENGTH = 99  # symbols of an encoded text: start, at most 97 characters, end, padding

# The first four are signs of ours: in a text they are characters like any other that has no number.
_NUMBERS = {symbol: number for number, symbol in enumerate(SYMBOLS) if number > OTHER}


def encode(text: str, length: int = LENGTH) -> list[int]:
    """The `length` numbers of a text: small letters, cut to length - 2, between start and end, then padding.

    >>> encode("Ab é", 8)
    [0, 9, 10, 4, 3, 1, 2, 2]
    """
    numbers = [_NUMBERS.get(character, OTHER) for character in text.lower()[: length - 2]]
    return [START, *numbers, END, *[PAD] * (length - 2 - len(numbers))]


def decode(numbers: Sequence[int]) -> str:
    """The text up to the first end, without start and padding.

    >>> decode([0, 9, 10, 4, 3, 1, 2, 2])
    'ab #'
    """
    kept = []
    for number in numbers:
        if number == END:
            break
        if number not in (START, PAD):
            kept.append(SYMBOLS[number])
    return "".join(kept)


def others(texts: Iterable[str]) -> Counter[str]:
    """The characters of the texts that have no symbol of their own, and how often each is there.

    >>> others(["Ab é", "é a#b"]).most_common()
    [('é', 2), ('#', 1)]
    """
    return Counter(character for text in texts for character in text.lower() if character not in _NUMBERS)

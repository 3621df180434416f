"""Numbers in words, English and Spanish: translation data that comes with the package num2words, no download.

| data set     | from            | pairs                                            | licence                  |
|--------------|-----------------|--------------------------------------------------|--------------------------|
| number-words | num2words       | 5,000 of the numbers 0 to 9,999, a fixed choice  | LGPL 2.1 or later (code) |

Only the numbers that are used are spelt out: 10,000 words in 0.3 s or so, once for each process.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module

from tiebreak.data.pairs.characters import normalise
from tiebreak.data.pairs.pair_files import Pair
from tiebreak.data.splits import permutation
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream

NUMBERS = 10_000
SIZES = {"train": 4000, "val": 500, "test": 500}


@cache
def number_pairs() -> dict[str, tuple[Pair, ...]]:
    """For every split the English and Spanish words of its numbers; no number is in two of them."""
    try:
        num2words = import_module("num2words").num2words  # only when it is asked for
    except ImportError:
        raise TiebreakError(
            "number-words comes with the package num2words, which is not installed; `pip install 'num2words>=0.5'`"
        ) from None
    order = permutation(NUMBERS, stream(0, "split", "number-words")).tolist()
    pairs, begin = {}, 0
    for split, size in SIZES.items():
        chosen = order[begin : begin + size]
        pairs[split] = tuple((normalise(num2words(n, lang="en")), normalise(num2words(n, lang="es"))) for n in chosen)
        begin += size
    return pairs


def number_checksum() -> str:
    """The sha256 of all pairs as lines: another version of num2words may spell otherwise."""
    lines = [f"{split}\t{source}\t{target}\n" for split, pairs in number_pairs().items() for source, target in pairs]
    return hashlib.sha256("".join(lines).encode()).hexdigest()

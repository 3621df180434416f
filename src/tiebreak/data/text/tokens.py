"""Text to tokens and tokens to numbers: the only place with these rules.

| level     | marks | a token is                                                             | end of a line |
|-----------|-------|------------------------------------------------------------------------|---------------|
| word      | no    | what stands between white space: text that was split before, as PTB    | `<eos>`       |
| word      | yes   | a run of letters and digits (don't, x-ray), or any other mark by itself | `<eos>`       |
| character | -     | a character, line feeds included                                       | none          |

The vocabulary comes from the training text alone. Word level: `<unk>`, `<eos>`, then the most frequent words, ties in
the order of characters; `size` counts all of them. Character level: the characters in their own order, the most
frequent ones if there are more than `size`, and `<unk>` in front only where a split holds a character without a number.
Case matters, and blank lines are skipped.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError

Level = Literal["word", "character"]
LEVELS: tuple[str, ...] = get_args(Level)
UNKNOWN, END = "<unk>", "<eos>"
STEP = 1 << 22  # tokens that are counted or renumbered at a time
LEAST_VOCABULARY = 4  # <unk>, <eos> and two words

_MARKED = re.compile(r"<\w+>|\w+(?:['’-]\w+)*|[^\w\s]")
_NO_BLANK_BEFORE = re.compile(r" (?=[.,;:!?)\]}](?: |\n|$))")
_NO_BLANK_AFTER = re.compile(r"(?<=[(\[{]) ")


def split_words(text: str, marks: bool) -> list[str]:
    """The words of a text, without ends of lines.

    >>> split_words("Don't panic (yet).", marks=True)
    ["Don't", 'panic', '(', 'yet', ')', '.']
    """
    return _MARKED.findall(text) if marks else text.split()


def split_text(text: str, level: Level, marks: bool) -> list[str]:
    """All tokens of a text, with an `<eos>` at the end of every line that holds a word."""
    if level == "character":
        return list(text)
    tokens: list[str] = []
    for line in text.split("\n"):
        if words := split_words(line, marks):
            tokens += words
            tokens.append(END)
    return tokens


def make_vocabulary(
    where: str, streams: Mapping[str, NDArray[np.int32]], kinds: Sequence[str], level: Level, size: int
) -> tuple[str, ...]:
    """The vocabulary of a corpus, at most `size`, from its training tokens; an error unless two of them differ.

    The streams are numbers, and kinds[i] is what number i means.
    """
    counts = _counts(streams["train"], len(kinds)).tolist()
    special = {UNKNOWN, END} if level == "word" else set()
    known = [place for place, token in enumerate(kinds) if counts[place] and token not in special]
    most_frequent = heapq.nsmallest(size + 1, known, key=lambda place: (-counts[place], kinds[place]))
    ranked = [kinds[place] for place in most_frequent]
    if len(ranked) < 2:
        held = f"one {level} only, {ranked[0]!r}" if ranked else f"no {level} but {' and '.join(sorted(special))}"
        raise TiebreakError(f"{where}: the training text holds {held}; there is nothing to predict")
    if level == "word":
        return (UNKNOWN, END, *ranked[: size - len(special)])
    if len(ranked) <= size and all(counts):
        return tuple(sorted(ranked))
    return (UNKNOWN, *sorted(ranked[: size - 1]))


def _counts(numbers: NDArray[np.int32], kinds: int) -> NDArray[np.int64]:
    """How often each number occurs; in steps, since bincount makes a copy of twice the size."""
    counts = np.zeros(kinds, np.int64)
    for start in range(0, len(numbers), STEP):
        counts += np.bincount(numbers[start : start + STEP], minlength=kinds)
    return counts


def renumber(numbers: NDArray[np.int32], kinds: Sequence[str], words: Sequence[str]) -> NDArray[np.int32]:
    """Tokens in the numbers of a vocabulary instead of those of `kinds`, changed in place: there may be many."""
    table = number(kinds, words)
    for start in range(0, len(numbers), STEP):
        numbers[start : start + STEP] = table[numbers[start : start + STEP]]
    return numbers


def number(tokens: Sequence[str], words: Sequence[str]) -> NDArray[np.int32]:
    """The numbers of the tokens; those that are not in the vocabulary get that of `<unk>`, where there is one."""
    ids = {word: index for index, word in enumerate(words)}
    unknown = ids.get(UNKNOWN)
    if unknown is None and (strange := next((token for token in tokens if token not in ids), None)) is not None:
        raise TiebreakError(f"{strange!r} is not in the vocabulary, and it has no {UNKNOWN}; leave it out")
    return np.fromiter((ids.get(token, unknown) for token in tokens), np.int32, len(tokens))


def join_tokens(tokens: Iterable[str], level: Level) -> str:
    """Tokens as text for people: lines at `<eos>`, no blank before a full stop or a comma.

    >>> join_tokens(["Well", ",", "(", "no", ")", ".", "<eos>", "Yes"], "word")
    'Well, (no).\\nYes'
    """
    if level == "character":
        return "".join(tokens)
    text = " ".join("\n" if token == END else token for token in tokens).replace(" \n ", "\n").replace(" \n", "\n")
    return _NO_BLANK_AFTER.sub("", _NO_BLANK_BEFORE.sub("", text))

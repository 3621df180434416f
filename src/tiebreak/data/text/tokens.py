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

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError

Level = Literal["word", "character"]
LEVELS: tuple[str, ...] = get_args(Level)
UNKNOWN, END = "<unk>", "<eos>"
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


def make_vocabulary(where: str, streams: Mapping[str, Sequence[str]], level: Level, size: int) -> tuple[str, ...]:
    """The vocabulary of a corpus, at most `size`, from its training tokens; an error unless two of them differ."""
    counts = Counter(streams["train"])
    special = {UNKNOWN, END} if level == "word" else set()
    ranked = sorted(counts.keys() - special, key=lambda token: (-counts[token], token))
    if len(ranked) < 2:
        held = f"one {level} only, {ranked[0]!r}" if ranked else f"no {level} but {' and '.join(sorted(special))}"
        raise TiebreakError(f"{where}: the training text holds {held}; there is nothing to predict")
    if level == "word":
        return (UNKNOWN, END, *ranked[: size - len(special)])
    if len(ranked) <= size and all(counts.keys() >= set(stream) for stream in streams.values()):
        return tuple(sorted(ranked))
    return (UNKNOWN, *sorted(ranked[: size - 1]))


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

"""Text for language models: three streams of numbered tokens, checked, and the vocabulary that they are numbered by.

| data set        | from                        | level     | vocabulary | tokens: train / val / test                 |
|-----------------|-----------------------------|-----------|------------|--------------------------------------------|
| ptb             | ptb.{train,valid,test}.txt  | word      | 10,000     | 929,589 / 73,760 / 82,430, as published    |
| tinyshakespeare | input.txt                   | character | 65         | 1,003,854 / 55,769 / 55,771: 90/5/5        |
| pydoc           | Python's help: pydoc_topics | word      | 2,000      | depends on the version of Python           |
| markov          | generated, see grammar.py   | word      | 51         | 120,000 / 6,000 / 6,000                    |
| a path          | see text_files.py           | word      | 10,000     | as given, or 80/10/10                      |

What a token is and which of them are in the vocabulary: tokens.py. Addresses, sha256 and licences: `sources.SOURCES`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.fetch import find_source, joint_checksum, verify
from tiebreak.data.splits import SPLITS
from tiebreak.data.text import corpus_readers
from tiebreak.data.text.corpus_readers import Reading
from tiebreak.data.text.grammar import Grammar, make_grammar
from tiebreak.data.text.pydoc_topics import load_topics
from tiebreak.data.text.text_files import find_texts
from tiebreak.data.text.tokens import (
    END,
    LEAST_VOCABULARY,
    LEVELS,
    UNKNOWN,
    Level,
    join_tokens,
    make_vocabulary,
    number,
    renumber,
    split_words,
)
from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError, nearest
from tiebreak.streams import stream
from tiebreak.study.registry import is_path
from tiebreak.text import printable

CORPORA = (*corpus_readers.READERS, "markov")
VOCABULARY, PYDOC_VOCABULARY = 10_000, 2_000  # at most, unless the caller says otherwise
MARKOV_SIZES = {"train": 120_000, "val": 6_000, "test": 6_000}


@dataclass(frozen=True, kw_only=True, eq=False)
class CorpusData:
    """A corpus: three streams of numbered tokens."""

    name: str
    tokens: Mapping[str, NDArray[np.int32]]  # by split: one stream
    words: tuple[str, ...]  # the vocabulary: words[i] is what number i means
    level: Level
    marks: bool = False  # punctuation marks are words of their own
    checksum: str  # sha256 of its file; of a list, where there are several; of the text, where there is no file
    official: bool | None  # None: no checksum is published to compare with
    licence: str
    citation: str
    split_rule: str = "as published"
    notes: tuple[str, ...] = ()

    @property
    def unknown(self) -> int | None:
        """The number of `<unk>`."""
        return self.words.index(UNKNOWN) if UNKNOWN in self.words else None

    @property
    def end(self) -> int | None:
        """The number of `<eos>`, the end of a line."""
        return self.words.index(END) if END in self.words else None

    @property
    def sizes(self) -> dict[str, int]:
        """The number of tokens of each split."""
        return {split: len(self.tokens[split]) for split in SPLITS}

    def check_window(self, window: int, streams: int = 1) -> None:
        """Raise where a split is too short for one window in each of so many streams read side by side."""
        if window < 1 or streams < 1:
            raise TiebreakError(f"windows of {window} tokens in {streams} streams: both must be 1 or more")
        for split, size in self.sizes.items():
            if size < window * streams + 1:
                raise TiebreakError(
                    f"{printable(self.name)}: the {split} text has {size:,} tokens; windows of {window:,} in "
                    f"{streams:,} streams need {window * streams + 1:,}: shorten the windows, or use fewer streams"
                )

    def description(self) -> list[str]:
        """What the corpus holds, in lines."""
        name = printable(self.name)
        counts = ", ".join(f"{count:,} {split}" for split, count in self.sizes.items())
        return [
            f"{name}: {counts} tokens; {len(self.words):,} different {self.level}s",
            f"{name}: split {self.split_rule}; sha256 {self.checksum}",
            *(f"  {note}" for note in self.notes),
        ]


def load(
    name: str, data_dir: Path | None = None, *, level: Level | None = None, vocabulary: int | None = None
) -> CorpusData:
    """The corpus called `name`, or the user's own text at that path. None: the level and vocabulary of the table."""
    if level is not None and level not in LEVELS:
        raise TiebreakError(f"no level is called {level!r}; {nearest(level, LEVELS)}")
    if vocabulary is not None and vocabulary < LEAST_VOCABULARY:
        raise TiebreakError(f"a vocabulary of {vocabulary}: at least {LEAST_VOCABULARY}, with {UNKNOWN} and {END}")
    if is_path(name):
        level = level or "word"
        return _corpus(corpus_readers.read_user_text(name, level, data_dir), level, vocabulary or VOCABULARY)
    _check_name(name)
    if name == "markov":
        return _load_markov(level, vocabulary)
    level = level or ("character" if name == "tinyshakespeare" else "word")
    reading = corpus_readers.READERS[name](level, data_dir)
    return _corpus(reading, level, vocabulary or (PYDOC_VOCABULARY if name == "pydoc" else VOCABULARY))


def checksum(name: str, data_dir: Path | None = None) -> str:
    """The checksum that `load` would give; a file is not read as text for it."""
    if is_path(name):
        return find_texts(find_user_path(name, data_dir)).checksum()
    _check_name(name)
    if name == "pydoc":
        return load_topics().checksum()
    if name == "markov":
        return _drawn_checksum(_draw(make_grammar()))
    return joint_checksum(verify(name, data_dir))


def encode(text: str, data: CorpusData) -> NDArray[np.int32]:
    """A user's text in the numbers of a corpus, split by its rule; ends of lines are no tokens at the word level."""
    return number(list(text) if data.level == "character" else split_words(text, data.marks), data.words)


def join(tokens: Iterable[int], data: CorpusData) -> str:
    """Numbers of a corpus as text for people."""
    return join_tokens((data.words[token] for token in tokens), data.level)


def _check_name(name: str) -> None:
    if name not in CORPORA:
        hint = "your own text is a path with a slash, such as ./novel.txt"
        raise TiebreakError(f"no corpus is called {name!r}; {nearest(name, CORPORA)} ({hint})")


def _corpus(reading: Reading, level: Level, size: int) -> CorpusData:
    words = make_vocabulary(reading.where, reading.streams, reading.kinds, level, size)
    tokens = {split: renumber(reading.streams[split], reading.kinds, words) for split in SPLITS}
    return CorpusData(
        name=reading.source.name,
        tokens=tokens,
        words=words,
        level=level,
        marks=reading.marks,
        checksum=reading.checksum,
        official=reading.official,
        licence=reading.source.licence,
        citation=reading.source.citation,
        split_rule=reading.split_rule,
        notes=(*reading.notes, *_unknowns(tokens, words)),
    )


def _load_markov(level: Level | None, vocabulary: int | None) -> CorpusData:
    grammar = make_grammar()
    if level == "character" or (vocabulary is not None and vocabulary < len(grammar.words)):
        raise TiebreakError(f"markov: its entropy is known for its {len(grammar.words)} words only; take them all")
    tokens, source = _draw(grammar), find_source("markov")
    floors = {split: grammar.realised(tokens[split]) for split in SPLITS}
    listed = ", ".join(f"{floor:.4f} {split}" for split, floor in floors.items())
    return CorpusData(
        name="markov",
        tokens=tokens,
        words=grammar.words,
        level="word",
        checksum=_drawn_checksum(tokens),
        official=None,
        licence=source.licence,
        citation=source.citation,
        split_rule="three streams drawn apart",
        notes=(
            f"no model goes below perplexity {np.exp(grammar.entropy()):.4f} in expectation; as drawn: {listed}",
            f"a model that sees one word back does not go below {np.exp(grammar.one_back()):.4f}",
        ),
    )


def _draw(grammar: Grammar) -> dict[str, NDArray[np.int32]]:
    return {split: grammar.sample(size, stream(0, "markov", split)) for split, size in MARKOV_SIZES.items()}


def _drawn_checksum(tokens: Mapping[str, NDArray[np.int32]]) -> str:
    return hashlib.sha256(b"".join(tokens[split].astype("<i4").tobytes() for split in SPLITS)).hexdigest()


def _unknowns(tokens: Mapping[str, NDArray[np.int32]], words: tuple[str, ...]) -> tuple[str, ...]:
    """How much of each split is `<unk>`."""
    if UNKNOWN not in words:
        return ()
    unknown = words.index(UNKNOWN)
    counts = {split: int((tokens[split] == unknown).sum()) for split in SPLITS}
    listed = ", ".join(f"{count:,} {split} ({count / len(tokens[split]):.1%})" for split, count in counts.items())
    return (f"{UNKNOWN}: {listed}",)

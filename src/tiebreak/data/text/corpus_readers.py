"""Corpora as they are read: the tokens of each split, numbered as they occur, before there is a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.fetch import find_source, joint_checksum, verify
from tiebreak.data.left_out import left_out
from tiebreak.data.sources import Source
from tiebreak.data.splits import SPLITS
from tiebreak.data.text.pydoc_topics import SPLIT_RULE, load_topics
from tiebreak.data.text.text_files import find_texts, read_corpus
from tiebreak.data.text.token_numbers import Numbering, Numbers
from tiebreak.data.text.tokens import Level
from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError
from tiebreak.text import printable

LEAST_TOKENS = 2  # of a split: one to read and one to predict


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The tokens of each split: kinds[i] is what number i means.

    `where` they were found, for messages; `marks`: punctuation marks are words.
    """

    source: Source
    where: str
    streams: Mapping[str, Numbers]
    kinds: Sequence[str]
    marks: bool
    checksum: str
    official: bool | None = None
    split_rule: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for split in SPLITS:
            if (count := len(self.streams[split])) < LEAST_TOKENS:
                raise TiebreakError(f"{self.where}: {split}: {count} tokens; at least {LEAST_TOKENS} are needed")


def read_ptb(level: Level, data_dir: Path | None) -> Reading:
    """The Penn Treebank as Mikolov prepared it: words between blanks, `<unk>` in the text."""
    files = verify("ptb", data_dir)
    paths = [file.path for file in files.values()]  # in the order of the source: train, valid, test
    numbering = Numbering(str(paths[0]), level, marks=False)
    return Reading(
        source=find_source("ptb"),
        where=str(paths[0]),
        streams={split: numbering.add(read_corpus(path)) for split, path in zip(SPLITS, paths, strict=True)},
        kinds=numbering.kinds,
        marks=False,
        checksum=joint_checksum(files),
        official=all(file.official for file in files.values()),
        split_rule="as published",
    )


def read_shakespeare(level: Level, data_dir: Path | None) -> Reading:
    """Tiny Shakespeare, cut as it usually is."""
    files = verify("tinyshakespeare", data_dir)
    (file,) = files.values()
    numbering = Numbering(str(file.path), level, marks=True)
    return Reading(
        source=find_source("tinyshakespeare"),
        where=str(file.path),
        streams=_cut(str(file.path), numbering.add(read_corpus(file.path)), percent=5),
        kinds=numbering.kinds,
        marks=True,
        checksum=joint_checksum(files),
        official=file.official,
        split_rule="90/5/5 of the text, in its order",
    )


def read_pydoc(level: Level, data_dir: Path | None) -> Reading:
    """The topics of the running Python."""
    topics, numbering = load_topics(), Numbering("pydoc", level, marks=True)
    return Reading(
        source=find_source("pydoc"),
        where="pydoc",
        streams={split: numbering.add([topics.texts[split]]) for split in SPLITS},
        kinds=numbering.kinds,
        marks=True,
        checksum=topics.checksum(),
        split_rule=SPLIT_RULE,
        notes=(f"repeated paragraphs dropped: {topics.repeated:,}",),
    )


READERS: Mapping[str, Callable[[Level, Path | None], Reading]] = {
    "ptb": read_ptb,
    "tinyshakespeare": read_shakespeare,
    "pydoc": read_pydoc,
}


def read_user_text(name: str, level: Level, data_dir: Path | None) -> Reading:
    """A user's own text."""
    path = find_user_path(name, data_dir)
    found, where = find_texts(path), printable(path)
    numbering = Numbering(where, level, found.marks)
    streams = {part: numbering.add(read_corpus(file)) for part, file in found.files.items()}
    if "whole" in streams:
        streams = _cut(where, streams["whole"], percent=10)
    return Reading(
        source=Source(name=name, licence="", citation=""),
        where=where,
        streams=streams,
        kinds=numbering.kinds,
        marks=found.marks,
        checksum=found.checksum(),
        split_rule=found.split_rule,
        notes=left_out(path, set(found.files.values())) if path.is_dir() else (),
    )


def _cut(where: str, tokens: Numbers, percent: int) -> dict[str, Numbers]:
    """The text in its order: training first, then `percent` for validation and as many and the rest for testing."""
    held = len(tokens) * percent // 100
    if held < LEAST_TOKENS:
        least = -(-100 * LEAST_TOKENS // percent)
        raise TiebreakError(
            f"{where}: {len(tokens):,} tokens are too few to be split {100 - 2 * percent}/{percent}/{percent}; at "
            f"least {least} are needed, or a folder with train.txt, valid.txt and test.txt"
        )
    first = len(tokens) * (100 - 2 * percent) // 100
    return {"train": tokens[:first], "val": tokens[first : first + held], "test": tokens[first + held :]}

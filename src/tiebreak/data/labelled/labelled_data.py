"""Texts with labels, checked, split into train, val and test, as numbers of words.

| data set | from                                          | splits: train / val / test                         |
|----------|-----------------------------------------------|----------------------------------------------------|
| reviews  | none, see made_reviews.py                     | 3,000 / 500 / 500                                  |
| a path   | FILE.csv with columns text, label             | 80/10/10 by label, or as the column split says     |
| a path   | FOLDER/{train,val,test}.csv                   | as given                                           |

A text is put into lower case and cut into words and marks (`tokens.split_words`). The vocabulary comes from the
training texts alone: padding 0, unknown 1, then the most frequent words, ties in the order of characters. Repeated rows
are dropped before a random split: they would be in training and test at once. Licences: `sources.SOURCES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.checksums import file_checksum
from tiebreak.data.fetch import Checked, find_source, joint_checksum
from tiebreak.data.labelled.labelled_files import FORM, Labelled, further_columns, read_labelled
from tiebreak.data.labelled.made_reviews import made_reviews, reviews_checksum
from tiebreak.data.left_out import left_out
from tiebreak.data.sources import Source
from tiebreak.data.splits import LEAST, SPLITS, counts_by_split, tenths
from tiebreak.data.text.tokens import split_words
from tiebreak.data.user_paths import check_file, find_user_path
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream
from tiebreak.study.registry import is_path
from tiebreak.text import number_of, printable

PADDING, UNKNOWN = 0, 1
VOCABULARY, LENGTH = 10_000, 200  # the defaults
OWN = "your own texts are a path with a slash to a .csv file or to a folder, such as ./reviews.csv"


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledData:
    """Texts as numbers of words, with their classes. `official` None: no checksum is published to compare with."""

    name: str
    tokens: Mapping[str, NDArray[np.int64]]  # by split: [N, T], padded with 0
    labels: Mapping[str, NDArray[np.int64]]  # by split: [N]
    words: tuple[str, ...]  # by number, padding and unknown included
    class_names: tuple[str, ...]
    checksum: str
    official: bool | None
    licence: str
    citation: str
    split_rule: str
    cut: int = 0  # texts of which the end was cut off
    notes: tuple[str, ...] = ()  # what was left out

    @property
    def sizes(self) -> dict[str, int]:
        """The number of texts of each split."""
        return {split: len(self.labels[split]) for split in SPLITS}

    def description(self) -> list[str]:
        """What the data set holds, in lines."""
        name = printable(self.name)
        length = self.tokens["train"].shape[1]
        by_split = [np.bincount(self.labels[split], minlength=len(self.class_names)).tolist() for split in SPLITS]
        rows = zip(self.class_names, *by_split, strict=True)
        return [
            f"{name}: {counts_by_split(self.sizes.values())}; {len(self.class_names)} classes, {len(self.words):,} "
            f"words, at most {length} in a text",
            f"{name}: split {self.split_rule}; sha256 {self.checksum}",
            *([f"  {number_of(self.cut, 'text')} cut off after {length} words"] if self.cut else []),
            *(f"  {note}" for note in self.notes),
            *(f"  {printable(label)}: {counts_by_split(counts)}" for label, *counts in rows),
        ]


def load(
    name: str, data_dir: Path | None = None, *, vocabulary: int = VOCABULARY, length: int = LENGTH
) -> LabelledData:
    """The data set called `name`, or the user's own at the path `name`, checked and split."""
    if not is_path(name):
        source = find_source(name)
        return _labelled(source, made_reviews(), reviews_checksum(), "as generated", vocabulary, length)
    path, source = find_user_path(name, data_dir), Source(name=name, licence="", citation="")
    if path.is_dir():
        files = _own_files(path)
        splits = {split: read_labelled(file) for split, file in files.items()}
        found = _labelled(source, splits, checksum(name, data_dir), "as in the files", vocabulary, length)
        return replace(found, notes=(*_column_notes(files.values()), *left_out(path, set(files.values()))))
    rows = read_labelled(path)
    if rows[0].split:
        splits = {split: [row for row in rows if row.split == split] for split in SPLITS}
        rule = "as the column split says"
    else:
        splits, rule = _random_split(path, rows), "80/10/10 at random, by label, the same for everyone"
    repeated = len(rows) - sum(map(len, splits.values()))
    dropped = [f"{number_of(repeated, 'repeated row')} dropped"] if repeated else []
    found = _labelled(source, splits, file_checksum(path), rule, vocabulary, length)
    return replace(found, notes=(*_column_notes([path]), *dropped))


def checksum(name: str, data_dir: Path | None = None) -> str:
    """The checksum that `load` would give, found without reading a text."""
    if not is_path(name):
        find_source(name)
        return reviews_checksum()
    path = find_user_path(name, data_dir)
    if not path.is_dir():
        return file_checksum(path)
    files = _own_files(path).values()
    return joint_checksum({file.name: Checked(path=file, sha256=file_checksum(file), official=False) for file in files})


def numbers(text: str, known: Mapping[str, int], length: int) -> NDArray[np.int64]:
    """A text as numbers [length]: cut off or padded."""
    found = [known.get(word, UNKNOWN) for word in words_of(text)][:length]
    return np.array(found + [PADDING] * (length - len(found)), np.int64)


def words_of(text: str) -> list[str]:
    """The words and marks of a text, in lower case."""
    return split_words(text.lower(), marks=True)


def _column_notes(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        if others := further_columns(file):
            yield f"left out: columns of {file.name}: {', '.join(others)}"


def _own_files(folder: Path) -> dict[str, Path]:
    files = {split: folder / f"{split}.csv" for split in SPLITS}
    for path in files.values():
        check_file(path, "a folder of labelled texts has the files train.csv, val.csv and test.csv")
    return files


def _random_split(path: Path, rows: Sequence[Labelled]) -> dict[str, list[Labelled]]:
    once = list(dict.fromkeys(rows))
    if len(once) < LEAST:
        raise TiebreakError(
            f"{printable(path)}: {len(once)} different rows, too few to be split 80/10/10; at least {LEAST} are "
            "needed, or a column split"
        )
    labels = {label: number for number, label in enumerate(sorted({row.label for row in once}))}
    chosen = tenths(np.array([labels[row.label] for row in once]), stream(0, "split", "labelled"))
    return {split: [once[index] for index in chosen[split]] for split in SPLITS}


def _labelled(
    source: Source,
    splits: Mapping[str, Sequence[Labelled]],
    found_checksum: str,
    rule: str,
    vocabulary: int,
    length: int,
) -> LabelledData:
    where = printable(source.name)
    for split in SPLITS:
        if not splits[split]:
            raise TiebreakError(f"{where}: no rows of the split {split}; {FORM}")
    classes = {label: number for number, label in enumerate(sorted({row.label for row in splits["train"]}))}
    if len(classes) < 2:
        raise TiebreakError(
            f"{where}: all training texts have the label {next(iter(classes))!r}; at least two are needed"
        )
    for row in (row for split in SPLITS for row in splits[split]):
        if row.label not in classes:
            raise TiebreakError(f"{where}: the label {printable(row.label)!r} does not occur in training")
    counts = Counter(word for row in splits["train"] for word in words_of(row.text))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - 2]
    words = ("<pad>", "<unk>", *frequent)
    known = {word: number for number, word in enumerate(words) if number > UNKNOWN}
    lengths = [len(words_of(row.text)) for split in SPLITS for row in splits[split]]
    longest = max(1, min(length, max(lengths)))
    return LabelledData(
        name=source.name,
        tokens={split: np.stack([numbers(row.text, known, longest) for row in splits[split]]) for split in SPLITS},
        labels={split: np.array([classes[row.label] for row in splits[split]], np.int64) for split in SPLITS},
        words=words,
        class_names=tuple(classes),
        checksum=found_checksum,
        official=None,
        licence=source.licence,
        citation=source.citation,
        split_rule=rule,
        cut=sum(each > longest for each in lengths),
    )

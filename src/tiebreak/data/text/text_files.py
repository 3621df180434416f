"""A user's text: one file, or a folder of three.

| path                                           | words        | splits                                        |
|------------------------------------------------|--------------|-----------------------------------------------|
| a file                                         | marks apart  | the first 80 % of the tokens, then 10, then 10 |
| FOLDER/train.txt, valid.txt (or val), test.txt | marks apart  | as the files say                              |
| FOLDER/ptb.{train,valid,test}.txt              | at blanks    | as the files say: the Penn Treebank layout    |

How text is read, and what is refused: `files.read_pieces`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.checksums import file_checksum
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError
from tiebreak.files import is_file, read_pieces
from tiebreak.text import printable

LAYOUTS: tuple[tuple[tuple[str, str, str], bool], ...] = (  # names of the files for train, val and test; marks apart?
    (("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"), False),
    (("train.txt", "valid.txt", "test.txt"), True),
    (("train.txt", "val.txt", "test.txt"), True),
)


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """The files of each split, or one file called `whole` that is split later; `marks`: punctuation marks are words."""

    files: dict[str, Path]
    marks: bool
    split_rule: str

    def checksum(self) -> str:
        """The sha256 of the file; of several, that of their list."""
        if len(self.files) == 1:
            return file_checksum(self.files["whole"])
        lines = [f"{file_checksum(path)}  {split}\n" for split, path in self.files.items()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def find_texts(path: Path) -> TextFiles:
    """The text files that a path means; opens none."""
    if not path.is_dir():
        return TextFiles(files={"whole": path}, marks=True, split_rule="80/10/10 of the text, in its order")
    for names, marks in LAYOUTS:
        found = [path / name for name in names]
        if all(map(is_file, found)):
            rule = f"as in the files {', '.join(names)}"
            return TextFiles(files=dict(zip(SPLITS, found, strict=True)), marks=marks, split_rule=rule)
    layouts = " or ".join(", ".join(names) for names, _ in LAYOUTS[:2])
    raise TiebreakError(f"{printable(path)}: a folder of text needs the files {layouts}; or name one text file")


def read_corpus(path: Path) -> Iterator[str]:
    """The text of a file in pieces; a file without any is an error."""
    empty = True
    for piece in read_pieces(path):
        empty = empty and not piece.strip()
        yield piece
    if empty:
        raise TiebreakError(f"{printable(path)}: empty; a text is needed")

"""Text files that nobody vouches for: one file, or a folder of three.

| path                                           | words        | splits                                        |
|------------------------------------------------|--------------|-----------------------------------------------|
| a file                                         | marks apart  | the first 80 % of the tokens, then 10, then 10 |
| FOLDER/train.txt, valid.txt (or val), test.txt | marks apart  | as the files say                              |
| FOLDER/ptb.{train,valid,test}.txt              | at blanks    | as the files say: the Penn Treebank layout    |

Text is UTF-8 with or without a byte order mark; CR LF and CR are line feeds. A NUL byte means that it is no text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.fetch import file_checksum
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError
from tiebreak.text import printable

LIMIT_BYTES = 256 << 20  # of one file: its tokens take about twenty times as much while they are counted
LAYOUTS: tuple[tuple[tuple[str, str, str], bool], ...] = (  # names of the files for train, val and test; marks apart?
    (("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"), False),
    (("train.txt", "valid.txt", "test.txt"), True),
    (("train.txt", "val.txt", "test.txt"), True),
)


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """A user's text by split, or as a `whole` that is yet to be cut; `marks`: punctuation marks are words."""

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


def is_file(path: Path) -> bool:
    """Whether there is such a file; one clear line where its folder may not be entered."""
    try:
        return path.is_file()
    except OSError as error:
        raise TiebreakError(f"{printable(path)}: cannot look there: {error.strerror}") from None


def read_text(path: Path, limit: int = LIMIT_BYTES) -> str:
    """The text of a file, with line feeds at the ends of lines; one clear line where it is none."""
    where = printable(path)
    try:
        if (size := path.stat().st_size) > limit:
            raise TiebreakError(f"{where}: {size:,} bytes of text; at most {limit:,} are read: take a part of it")
        content = path.read_bytes()
    except OSError as error:
        raise TiebreakError(f"{where}: cannot be read: {error.strerror}") from None
    if (place := content.find(b"\0")) >= 0:
        raise TiebreakError(
            f"{where}: line {_line(content, place)}: a NUL byte, so this is no UTF-8 text; save it as such"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = f"line {_line(content, error.start)}: byte {error.start} (0x{content[error.start]:02x})"
        raise TiebreakError(f"{where}: {at} is not UTF-8; save the file as UTF-8") from None
    if not text.strip():
        raise TiebreakError(f"{where}: empty; a text is needed")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _line(content: bytes, place: int) -> int:
    return content.count(b"\n", 0, place) + 1

"""The text files that a path means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.data.text import corpus
from tiebreak.data.text.corpus import join, load
from tiebreak.data.text.text_files import find_texts, read_corpus
from tiebreak.data.text.tokens import END, UNKNOWN
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

NOVEL = "The cat sat.\nThe dog ran, and the cat ran.\n\n" * 40


def novel(tmp_path: Path, content: str | bytes = NOVEL) -> str:
    path = tmp_path / "novel.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refusal(name: str, **options: object) -> str:
    with pytest.raises(TiebreakError) as caught:
        load(name, **options)  # type: ignore[arg-type]
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("content", ["", " \n\n\t ", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, content: str | bytes) -> None:
    assert refusal(novel(tmp_path, content)).endswith("novel.txt: empty; a text is needed")


@pytest.mark.parametrize("names", ["train valid test", "train val test", "ptb.train ptb.valid ptb.test"])
def test_a_folder_of_three_files(tmp_path: Path, names: str) -> None:
    for name, text in zip(names.split(), ("a mr. b a\n", "b c\n", "a a b\n"), strict=True):
        (tmp_path / f"{name}.txt").write_text(text)
    data = load(str(tmp_path))
    marks = not names.startswith("ptb")
    assert data.words == (UNKNOWN, END, "a", *((".", "b", "mr") if marks else ("b", "mr.")))
    assert join(data.tokens["val"], data) == "b <unk>\n"
    assert data.sizes == {"train": 6 if marks else 5, "val": 3, "test": 4}
    assert data.checksum == corpus.checksum(str(tmp_path))


def test_the_penn_treebank_layout_comes_first_and_a_file_is_whole(tmp_path: Path) -> None:
    for name in ("ptb.train", "ptb.valid", "ptb.test", "train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text("a b")
    found = find_texts(tmp_path)
    assert [path.name for path in found.files.values()] == ["ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"]
    assert not found.marks
    alone = find_texts(tmp_path / "train.txt")
    assert (list(alone.files), alone.marks) == (["whole"], True)
    assert found.checksum() != alone.checksum()


def test_a_folder_without_texts_is_answered_with_the_layouts(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"ptb\.train\.txt.* or train\.txt, valid\.txt"):
        find_texts(tmp_path)


def test_a_text_is_read_with_line_feeds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert "".join(read_corpus(tmp_path / "a.txt")) == "a\nb\nc\n"

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from support import REAL_DATA
from tiebreak.data.text import corpus
from tiebreak.data.text.corpus import CorpusData, encode, join, load
from tiebreak.data.text.corpus_readers import LEAST_TOKENS
from tiebreak.data.text.pydoc_topics import load_topics
from tiebreak.data.text.text_files import read_text
from tiebreak.data.text.tokens import END, UNKNOWN
from tiebreak.errors import TiebreakError

REAL = REAL_DATA
NOVEL = "The cat sat.\nThe dog ran, and the cat ran.\n\n" * 40


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)


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


def test_a_text_file_is_cut_in_its_order(tmp_path: Path) -> None:
    data = load(novel(tmp_path))
    whole = np.concatenate([data.tokens[split] for split in ("train", "val", "test")])
    assert join(whole, data) == NOVEL.replace("\n\n", "\n")
    assert data.sizes == {"train": 480, "val": 60, "test": 60}
    assert data.words[:2] == (UNKNOWN, END)
    assert (data.unknown, data.end, data.level, data.marks) == (0, 1, "word", True)
    assert data.checksum == hashlib.sha256(NOVEL.encode()).hexdigest() == corpus.checksum(novel(tmp_path))
    assert data.official is None
    assert data.floor is None
    assert data.split_rule in data.description()[1]


def test_words_beyond_the_vocabulary_are_unknown_and_counted(tmp_path: Path) -> None:
    data = load(novel(tmp_path), vocabulary=5)
    assert len(data.words) == 5
    counts = {split: int((tokens == data.unknown).sum()) for split, tokens in data.tokens.items()}
    assert min(counts.values()) > 0
    assert data.notes == (f"<unk>: {counts['train']} train (46.7%), {counts['val']} val (46.7%), 28 test (46.7%)",)
    assert f"  {data.notes[0]}" in data.description()
    np.testing.assert_array_equal(encode("zebra", data), [data.unknown])


def test_characters(tmp_path: Path) -> None:
    data = load(novel(tmp_path, "ab\ncd" * 100), level="character")
    assert data.words == ("\n", "a", "b", "c", "d")
    assert (data.unknown, data.end, data.notes) == (None, None, ())
    assert join(encode("dab\n", data), data) == "dab\n"
    with pytest.raises(TiebreakError, match="'x' is not in the vocabulary"):
        encode("ax", data)


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


def test_the_penn_treebank_layout_by_name(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"ptb.{split}.txt").write_text(f" the <unk> {split} N \n the end \n")
    data = load("ptb", tmp_path)
    assert join(data.tokens["test"], data) == "the <unk> <unk> N\nthe end\n"
    assert data.official is False
    assert "LDC" in data.licence


def test_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(tmp_path / "a.txt") == "a\nb\nc\n"


@pytest.mark.parametrize("content", ["", " \n\n\t ", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, content: str | bytes) -> None:
    assert refusal(novel(tmp_path, content)).endswith("novel.txt: empty; a text is needed")


def test_what_is_not_text_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "line 2: a NUL byte" in refusal(novel(tmp_path, b"one\ntwo\0three"))
    assert "line 3: byte 8 (0xff) is not UTF-8" in refusal(novel(tmp_path, b"one\ntwo\n\xff"))
    assert "NUL" in refusal(novel(tmp_path, NOVEL.encode("utf-16")))


def test_one_word_over_and_over(tmp_path: Path) -> None:
    assert "one word only, 'buffalo'; there is nothing to predict" in refusal(novel(tmp_path, "buffalo " * 100))
    assert "one character only, 'a'" in refusal(novel(tmp_path, "a" * 100), level="character")


def test_too_short_to_be_split(tmp_path: Path) -> None:
    assert "3 tokens are too few to be split 80/10/10; at least 20" in refusal(novel(tmp_path, "a b"))
    load(novel(tmp_path, "a b " * 10))
    for split, text in (("train", "a b"), ("valid", "a"), ("test", "a b")):
        (tmp_path / f"{split}.txt").write_text(text)
    assert f"val: 1 tokens; at least {LEAST_TOKENS}" in refusal(str(tmp_path), level="character")


def test_a_window_longer_than_the_text(tmp_path: Path) -> None:
    data = load(novel(tmp_path))
    data.check_window(59)
    data.check_window(11, streams=5)
    with pytest.raises(TiebreakError, match="the val text has 60 tokens; windows of 60 in 1 streams need 61"):
        data.check_window(60)
    with pytest.raises(TiebreakError, match="1 or more"):
        data.check_window(0)


def test_options_and_names_that_make_no_sense(tmp_path: Path) -> None:
    assert "did you mean 'word'?" in refusal(novel(tmp_path), level="words")
    assert "a vocabulary of 3: at least 4" in refusal(novel(tmp_path), vocabulary=3)
    assert "did you mean 'markov'?" in refusal("markow")
    assert "no such file" in refusal(str(tmp_path / "no.txt"))
    assert "a folder of text needs the files" in refusal(str(tmp_path))
    with pytest.raises(TiebreakError, match="at most 5 are read"):
        read_text(Path(novel(tmp_path)), limit=5)


def test_markov_knows_its_floor() -> None:
    data = load("markov")
    assert data.sizes == corpus.MARKOV_SIZES
    assert data.floor is not None
    for split, size in data.sizes.items():
        assert data.floors[split] == pytest.approx(data.floor, rel=4 / np.sqrt(size))
    assert data.words[data.end or 0] == END
    assert data.checksum == corpus.checksum("markov")
    assert f"{data.floor:.4f}" in data.description()[2]
    np.testing.assert_array_equal(encode(join(data.tokens["test"][:9], data), data), data.tokens["test"][:9])
    assert "take them all" in refusal("markov", level="character")
    assert "take them all" in refusal("markov", vocabulary=20)


def test_pydoc_is_there_and_its_splits_share_no_paragraph() -> None:
    data = load("pydoc")
    assert len(data.words) == 2000
    held = data.sizes["val"] / sum(data.sizes.values())
    assert 0.05 < held < 0.12
    assert 0.05 < data.sizes["test"] / sum(data.sizes.values()) < 0.12
    assert data.checksum == corpus.checksum("pydoc")
    lines = {split: set(text.splitlines()) for split, text in load_topics().texts.items()}
    assert not lines["train"] & (lines["val"] | lines["test"])
    assert not lines["val"] & lines["test"]


def test_topics_are_kept_whole_and_repeated_paragraphs_left_out() -> None:
    topics = {f"t{n:02}": f"Title {n}\n*******\n\nsome\nwords {n}\n\nsaid before" for n in range(20)}
    found = load_topics(topics)
    assert found.repeated == 19
    assert "".join(found.texts.values()).count("said before") == 1
    for text in found.texts.values():
        for line in text.splitlines():
            if line.startswith("Title"):
                assert f"some words {line.split()[1]}\n" in text


def check_real(data: CorpusData, sizes: tuple[int, int, int], words: int) -> None:
    assert tuple(data.sizes.values()) == sizes
    assert len(data.words) == words
    assert data.official is True
    assert all(tokens.max() < words for tokens in data.tokens.values())


@pytest.mark.skipif(not (REAL / "ptb").is_dir(), reason="the real Penn Treebank is not here")
def test_the_real_penn_treebank() -> None:
    data = load("ptb", REAL)
    check_real(data, (929_589, 73_760, 82_430), 10_000)
    assert data.notes == ("<unk>: 45,020 train (4.8%), 3,485 val (4.7%), 4,794 test (5.8%)",)


@pytest.mark.skipif(not (REAL / "tinyshakespeare").is_dir(), reason="the real Tiny Shakespeare is not here")
def test_the_real_shakespeare() -> None:
    check_real(load("tinyshakespeare", REAL), (1_003_854, 55_769, 55_771), 65)

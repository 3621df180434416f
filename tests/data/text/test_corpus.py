from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from support.real_data import need
from tiebreak.data.text import corpus
from tiebreak.data.text.corpus import CorpusData, encode, join, load
from tiebreak.data.text.grammar import make_grammar
from tiebreak.data.text.tokens import END
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


def test_what_is_not_text_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "line 2: a NUL byte" in refusal(novel(tmp_path, b"one\ntwo\0three"))
    assert "line 3: not UTF-8 text (byte 8)" in refusal(novel(tmp_path, b"one\ntwo\n\xff"))
    assert "NUL" in refusal(novel(tmp_path, NOVEL.encode("utf-16")))


def test_one_word_over_and_over(tmp_path: Path) -> None:
    assert "one word only, 'buffalo'; there is nothing to predict" in refusal(novel(tmp_path, "buffalo " * 100))
    assert "one character only, 'a'" in refusal(novel(tmp_path, "a" * 100), level="character")


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


def test_markov_knows_its_floor() -> None:
    data = load("markov")
    assert data.sizes == corpus.MARKOV_SIZES
    floor, *drawn = map(float, re.findall(r"\d+\.\d{4}", data.notes[0]))
    assert floor == pytest.approx(np.exp(make_grammar().entropy()), abs=1e-4)
    for size, realised in zip(data.sizes.values(), drawn, strict=True):
        assert realised == pytest.approx(floor, rel=4 / np.sqrt(size))
    assert data.words[data.end or 0] == END
    assert data.checksum == corpus.checksum("markov")
    assert data.notes[0] in data.description()[2]
    np.testing.assert_array_equal(encode(join(data.tokens["test"][:9], data), data), data.tokens["test"][:9])
    assert "take them all" in refusal("markov", level="character")
    assert "take them all" in refusal("markov", vocabulary=20)


def check_real(data: CorpusData, sizes: tuple[int, int, int], words: int) -> None:
    assert tuple(data.sizes.values()) == sizes
    assert len(data.words) == words
    assert data.official is True
    assert all(tokens.max() < words for tokens in data.tokens.values())


def test_the_real_penn_treebank() -> None:
    data = load("ptb", need("ptb"))
    check_real(data, (929_589, 73_760, 82_430), 10_000)
    assert data.notes == ("<unk>: 45,020 train (4.8%), 3,485 val (4.7%), 4,794 test (5.8%)",)


def test_the_real_shakespeare() -> None:
    check_real(load("tinyshakespeare", need("tinyshakespeare")), (1_003_854, 55_769, 55_771), 65)

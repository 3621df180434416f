"""Corpora as tokens of each split."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.text import corpus
from tiebreak.data.text.corpus import join, load
from tiebreak.data.text.corpus_readers import LEAST_TOKENS, READERS, read_user_text
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


def test_too_short_to_be_split(tmp_path: Path) -> None:
    assert "3 tokens are too few to be split 80/10/10; at least 20" in refusal(novel(tmp_path, "a b"))
    load(novel(tmp_path, "a b " * 10))
    for split, text in (("train", "a b"), ("valid", "a"), ("test", "a b")):
        (tmp_path / f"{split}.txt").write_text(text)
    assert f"val: 1 tokens; at least {LEAST_TOKENS}" in refusal(str(tmp_path), level="character")


def test_the_penn_treebank_layout_by_name(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"ptb.{split}.txt").write_text(f" the <unk> {split} N \n the end \n")
    data = load("ptb", tmp_path)
    assert join(data.tokens["test"], data) == "the <unk> <unk> N\nthe end\n"
    assert data.official is False
    assert "LDC" in data.licence


def test_a_text_file_is_cut_in_its_order(tmp_path: Path) -> None:
    data = load(novel(tmp_path))
    whole = np.concatenate([data.tokens[split] for split in ("train", "val", "test")])
    assert join(whole, data) == NOVEL.replace("\n\n", "\n")
    assert data.sizes == {"train": 480, "val": 60, "test": 60}
    assert data.words[:2] == (UNKNOWN, END)
    assert (data.unknown, data.end, data.level, data.marks) == (0, 1, "word", True)
    assert data.checksum == hashlib.sha256(NOVEL.encode()).hexdigest() == corpus.checksum(novel(tmp_path))
    assert data.official is None
    assert data.split_rule in data.description()[1]


@pytest.mark.parametrize("count", [20, 21, 57, 100, 1009])
def test_no_token_is_lost_and_the_shares_are_80_10_10(count: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join("ab"[place % 2] for place in range(count)))
    reading = read_user_text(str(tmp_path / "a.txt"), "character", None)
    streams = {split: [reading.kinds[token] for token in tokens] for split, tokens in reading.streams.items()}
    assert "".join("".join(streams[split]) for split in ("train", "val", "test")) == ("ab" * count)[:count]
    assert (len(streams["train"]), len(streams["val"])) == (count * 8 // 10, count // 10)


def test_every_corpus_of_ours_but_the_generated_one_has_a_reader() -> None:
    assert {*READERS, "markov"} == {*corpus.CORPORA}

"""Numbers in words, two languages."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

import pytest

from tiebreak.data.pairs import number_pairs
from tiebreak.data.pairs.pair_data import PairData, checksum, load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

needs_num2words = pytest.mark.skipif(importlib.util.find_spec("num2words") is None, reason="num2words is not installed")


def everything(data: PairData) -> list[tuple[str, str]]:
    return [pair for pairs in data.pairs.values() for pair in pairs]


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(TiebreakError) as caught:
        call(*arguments)
    line = str(caught.value)
    assert line.isprintable()
    return line


@needs_num2words
def test_number_words_are_disjoint_and_normalised() -> None:
    data = load("number-words")
    assert data.sizes == {"train": 4000, "val": 500, "test": 500}
    assert len(set(everything(data))) == len({source for source, _ in everything(data)}) == 5000
    assert ("five hundred and forty eight", "quinientos cuarenta y ocho") in data.pairs["train"]
    assert set("".join(data.source_symbols + data.target_symbols)) <= set(" abcdefghijklmnopqrstuvwxyz")
    assert data.languages == ("English", "Spanish")
    assert data.official is None
    assert data.checksum == checksum("number-words")
    assert data.notes == ("0 of 500 test pairs, and the targets of 0, also occur in training",)


def test_number_words_without_num2words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "num2words", None)
    number_pairs.number_pairs.cache_clear()
    assert "num2words, which is not installed; `pip install 'num2words" in refusal(load, "number-words")


@needs_num2words
def test_the_choice_of_numbers_never_moves() -> None:
    pairs = number_pairs.number_pairs()
    assert {split: len(each) for split, each in pairs.items()} == number_pairs.SIZES
    assert pairs["train"][0] == ("three thousand nine hundred and fifty nine", "tres mil novecientos cincuenta y nueve")
    assert number_pairs.number_checksum() == checksum("number-words")

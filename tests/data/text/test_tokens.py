from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.data.text.tokens import (
    END,
    UNKNOWN,
    Level,
    join_tokens,
    make_vocabulary,
    number,
    split_text,
    split_words,
)
from tiebreak.errors import TiebreakError


def test_words_between_blanks_are_left_as_they_are() -> None:
    assert split_words("mr. <unk> did n't say N %", marks=False) == ["mr.", "<unk>", "did", "n't", "say", "N", "%"]


def test_marks_become_words_of_their_own() -> None:
    words = split_words("“Well,” he said: x-rays don't cost $3.50 (<unk>).", marks=True)
    assert " ".join(words) == "“ Well , ” he said : x-rays don't cost $ 3 . 50 ( <unk> ) ."


def test_lines_with_a_word_have_an_end_and_blank_lines_have_none() -> None:
    assert split_text("a b\n\n  \nc", "word", marks=False) == ["a", "b", END, "c", END]
    assert split_text("a b\n", "character", marks=True) == ["a", " ", "b", "\n"]


def vocabulary(where: str, text: tuple[str, str], level: Level, size: int) -> tuple[str, ...]:
    """The vocabulary of a training and a validation text."""
    train, val = (words.split() for words in text)
    kinds = sorted({*train, *val}, reverse=True)
    streams = {"train": number(train, kinds), "val": number(val, kinds), "test": number([], kinds)}
    return make_vocabulary(where, streams, kinds, level, size)


def test_the_vocabulary_is_the_most_frequent_training_words_with_ties_in_order() -> None:
    found = "b a b c d a <eos> <unk>", "z z z z z"
    assert vocabulary("x", found, "word", 5) == (UNKNOWN, END, "a", "b", "c")
    assert vocabulary("x", found, "word", 100) == (UNKNOWN, END, "a", "b", "c", "d")


def test_characters_get_an_unknown_only_where_one_is_needed() -> None:
    assert vocabulary("x", ("b a c", "a"), "character", 10) == ("a", "b", "c")
    assert vocabulary("x", ("b a c", "z"), "character", 10) == (UNKNOWN, "a", "b", "c")
    assert vocabulary("x", ("c b c a", ""), "character", 2) == (UNKNOWN, "c")


@pytest.mark.parametrize("text", ["a a a <eos>", "<unk> a", "<eos>"])
def test_one_word_is_no_vocabulary(text: str) -> None:
    with pytest.raises(TiebreakError, match=r"^here: the training text holds .*nothing to predict$"):
        vocabulary("here", (text, ""), "word", 100)


def test_words_without_a_number_are_unknown_or_an_error() -> None:
    np.testing.assert_array_equal(number(["a", "x", "b"], (UNKNOWN, "a", "b")), [1, 0, 2])
    with pytest.raises(TiebreakError, match="'x' is not in the vocabulary"):
        number(["a", "x"], ("a", "b"))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_characters_come_back(text: str) -> None:
    words = tuple(sorted(set(text)))
    tokens = number(split_text(text, "character", marks=False), words)
    assert tokens.dtype == np.int32
    assert join_tokens((words[token] for token in tokens), "character") == text


@given(st.lists(st.lists(st.sampled_from(["a", "bc", "don't", "Z9"]), min_size=1), max_size=5), st.booleans())
def test_words_come_back(lines: list[list[str]], marks: bool) -> None:
    text = "".join(" ".join(line) + "\n" for line in lines)
    assert join_tokens(split_text(text, "word", marks), "word") == text

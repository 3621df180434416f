from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tiebreak.data.pairs.characters import EOS, PAD, SOS, SPECIAL, UNK, encode, normalise, symbols, tidy, unknown
from tiebreak.errors import TiebreakError

LETTERS = tuple(" abc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¿Qué pasó?", "que paso ?"),
        ("I'm 20 years old!", "i m years old !"),
        ("Wait... What?!", "wait . . . what ? !"),
        ("El niño\tdijo:\u00a0«¡No!»", "el nino dijo no !"),
        (".", "."),
        ("", ""),
        ("日本 42", ""),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
@example("\u0130\u1e9e\u212a")
def test_normalise_twice_is_once_and_leaves_thirty_symbols(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert set(once) <= set(" !.?abcdefghijklmnopqrstuvwxyz")
    assert once == once.strip()
    assert "  " not in once


@given(st.text())
def test_normalise_does_not_depend_on_how_accents_are_written(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))


@given(st.text())
@example("\u0130\u1e9e\u212a\u0345\u0391")
def test_tidy_twice_is_once_and_drops_only_white_space(text: str) -> None:
    once = tidy(text)
    assert tidy(once) == once
    assert "".join(once.split()) == "".join(unicodedata.normalize("NFC", text.lower()).split())


@given(st.text("abc ", max_size=9), st.integers(0, 3))
def test_encoded_text_can_be_read_back(text: str, spare: int) -> None:
    numbers = encode(text, LETTERS, len(text) + 2 + spare)
    assert numbers[0] == SOS
    assert numbers[len(text) + 1 :] == [EOS] + [PAD] * spare
    assert "".join(LETTERS[number - SPECIAL] for number in numbers[1 : len(text) + 1]) == text


def test_characters_that_training_never_had_are_unknown_and_counted() -> None:
    assert encode("añbé", LETTERS, 6) == [SOS, 5, UNK, 6, UNK, EOS]
    assert unknown(["añbé", "abc", "xxa"], LETTERS) == 4
    assert unknown([], LETTERS) == 0


def test_symbols_are_sorted_and_each_is_there_once() -> None:
    assert symbols(["cab", "a c"]) == LETTERS
    assert symbols([]) == ()


def test_nothing_is_cut_in_silence() -> None:
    with pytest.raises(TiebreakError, match="a sentence of 4 characters does not fit into 5 tokens"):
        encode("abca", LETTERS, 5)

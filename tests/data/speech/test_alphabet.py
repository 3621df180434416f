from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tiebreak.data.speech.alphabet import END, LENGTH, OTHER, PAD, START, SYMBOLS, decode, encode, others


def test_the_symbols_are_those_of_the_reports_in_their_order() -> None:
    assert SYMBOLS == "<>@# ,.?-abcdefghijklmnopqrstuvwxyz"
    assert [SYMBOLS[number] for number in (START, END, PAD, OTHER)] == ["<", ">", "@", "#"]


def test_a_text_is_small_letters_between_start_and_end_then_padding() -> None:
    assert "".join(SYMBOLS[number] for number in encode("Yes, I do!", 14)) == "<yes, i do#>@@"


def test_a_long_text_is_cut_to_97_characters() -> None:
    numbers = encode("x" * 200)
    assert (len(numbers), numbers[0], numbers[-1]) == (99, START, END)
    assert decode(numbers) == "x" * 97


def test_our_own_signs_in_a_text_are_unknown_characters() -> None:
    assert decode(encode("a>b<c@d#")) == "a#b#c#d#"
    assert others(["a>b<c@d#", "x", "é"]).total() == 5


def test_decoding_stops_at_the_first_end_and_needs_none() -> None:
    assert decode([START, 9, END, 10, END]) == "a"
    assert decode([9, 10]) == "ab"
    assert decode([]) == ""


@given(st.text(), st.integers(2, 120))
def test_every_text_has_a_code_of_the_right_length(text: str, length: int) -> None:
    numbers = encode(text, length)
    assert len(numbers) == length
    assert numbers.count(START) == numbers.count(END) == 1
    assert all(0 <= number < len(SYMBOLS) for number in numbers)


@given(st.text(alphabet=SYMBOLS[OTHER:], max_size=LENGTH - 2))
def test_decoding_takes_encoding_back(text: str) -> None:
    assert decode(encode(text)) == text

"""Command templates: names are found and replaced, braces can be written, anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.study.command_template import fill, names_in, placeholders, value_text


@given(st.text(alphabet="ab{}- =", max_size=20))
def test_text_with_doubled_braces_stays_as_it_is(text: str) -> None:
    written = text.replace("{", "{{").replace("}", "}}")
    assert placeholders(written) == []
    assert fill(written, {}) == text


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70))
def test_numbers_are_read_back_exactly(number: float) -> None:
    assert type(number)(value_text(number)) == number


def test_values_stay_in_one_argument() -> None:
    assert fill("--name={name}", {"name": "a b; rm -rf $HOME '"}) == "--name=a b; rm -rf $HOME '"
    assert (value_text(True), value_text(64), value_text("x")) == ("true", "64", "x")
    assert names_in(["{a}{b}", "{a}"]) == ["a", "b"]


@pytest.mark.parametrize("argument", ["{", "}", "{}", "{lr:.2f}", "{a b}", "{{x}", "{0}", '{"json": 1}'])
def test_other_braces_are_refused(argument: str) -> None:
    with pytest.raises(ValueError, match="brace"):
        placeholders(argument)

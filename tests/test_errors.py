from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError, nearest


def test_a_mistyped_name_is_answered_with_the_nearest_one() -> None:
    assert "'cnn-pool'" in nearest("cnn-pol", ["mlp", "cnn-strided", "cnn-pool"])


def test_a_name_far_from_all_is_answered_with_all_of_them_in_order() -> None:
    assert "a, b" in nearest("zzz", ["b", "a"])


def test_where_nothing_is_valid_it_says_so() -> None:
    assert "valid" in nearest("x", [])


def test_a_tiebreak_error_is_a_value_error() -> None:
    assert issubclass(TiebreakError, ValueError)


@settings(deadline=None)
@given(st.text(), st.sets(st.text(min_size=1), max_size=5))
def test_any_name_gets_a_hint(name: str, valid: set[str]) -> None:
    assert nearest(name, valid)

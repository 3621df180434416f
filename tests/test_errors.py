from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.errors import StopStudyError, TiebreakError, describe_error, explain_design_errors, nearest


def test_a_mistyped_name_is_answered_with_the_nearest_one() -> None:
    assert "'cnn-pool'" in nearest("cnn-pol", ["mlp", "cnn-strided", "cnn-pool"])


def test_a_name_far_from_all_is_answered_with_all_of_them_in_order() -> None:
    assert "a, b" in nearest("zzz", ["b", "a"])


def test_where_nothing_is_valid_it_says_so() -> None:
    assert "valid" in nearest("x", [])


def test_a_tiebreak_error_is_a_value_error() -> None:
    assert issubclass(TiebreakError, ValueError)
    assert issubclass(StopStudyError, TiebreakError)


@settings(deadline=None)
@given(st.text(), st.sets(st.text(min_size=1), max_size=5))
def test_any_name_gets_a_hint(name: str, valid: set[str]) -> None:
    assert nearest(name, valid)


def refuse() -> None:
    raise TiebreakError("our own words")


@pytest.fixture
def users(tmp_path: Path) -> tuple[Path, Callable[[str], None]]:
    """A user's file, and a function that runs a line of Python as its second line."""
    path = tmp_path / "nets.py"

    def run(line: str) -> None:
        exec(compile(f"import math\n{line}\n", str(path), "exec"), {"refuse": refuse})

    return path, run


def caught(run: Callable[[str], None], line: str) -> Exception:
    try:
        run(line)
    except Exception as error:
        return error
    raise AssertionError(line)


def test_an_error_is_described_in_one_line_with_its_place(users: tuple[Path, Callable[[str], None]]) -> None:
    path, run = users
    assert describe_error(caught(run, "raise OSError('two\\nlines')"), str(path)) == f"OSError: two lines ({path}:2)"
    deep = caught(run, "refuse()")  # raised by our code, called by the user's
    assert f"({path}:2)" in describe_error(deep, str(path))
    assert "test_errors.py:" in describe_error(deep, None)
    assert describe_error(ValueError("no\nplace"), None) == "ValueError: no place"


def test_an_exception_that_cannot_be_shown_is_described_all_the_same() -> None:
    class OwnError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "OwnError" in describe_error(OwnError(), None)
    assert len(describe_error(ValueError("x" * 1_000_000), None)) < 3000


def test_an_explained_error_has_the_place_of_its_cause(users: tuple[Path, Callable[[str], None]]) -> None:
    path, run = users
    with pytest.raises(TiebreakError) as explained:
        raise TiebreakError("design 'x': KeyError: 1") from caught(run, "{}[1]")
    assert describe_error(explained.value, str(path)) == f"design 'x': KeyError: 1 ({path}:2)"


def test_what_a_users_design_raises_becomes_one_line(users: tuple[Path, Callable[[str], None]]) -> None:
    path, run = users
    with pytest.raises(TiebreakError) as error, explain_design_errors("mine", str(path)):
        run("{}[1]")
    assert str(error.value) == f"design 'mine': KeyError: 1 ({path}:2)"
    with pytest.raises(TiebreakError, match=r"^our own words$"), explain_design_errors("mine", str(path)):
        refuse()
    with pytest.raises(KeyError), explain_design_errors("ours", None):
        run("{}[1]")

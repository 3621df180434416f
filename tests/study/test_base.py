from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tiebreak.study.base import Grid, Name, Options, Strict, setting_label


class Example(Strict):
    name: Name = "x"
    count: int = 0
    options: Options = {}  # noqa: RUF012
    grid: Grid = {}  # noqa: RUF012


def test_an_unknown_key_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ValidationError, match=r"'cuont'.*'count'"):
        Example.model_validate({"cuont": 1})


@pytest.mark.parametrize("content", [{"count": "1"}, {"count": 1.0}, {"count": True}, {"options": {"a": [1]}}])
def test_values_are_not_converted(content: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Example.model_validate(content)


@pytest.mark.parametrize("name", ["", "two words", "-x", "ä", "x" * 61, "x\n"])
def test_a_name_is_safe_in_files_and_tables(name: str) -> None:
    with pytest.raises(ValidationError):
        Example(name=name)


def test_an_axis_of_a_grid_has_values() -> None:
    assert Example.model_validate({"grid": {"lr": [0.1, 1]}}).grid == {"lr": (0.1, 1.0)}
    with pytest.raises(ValidationError):
        Example.model_validate({"grid": {"lr": []}})


def test_a_model_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        Example().count = 2  # type: ignore[misc]


def test_a_setting_without_hyper_parameters_is_called_default() -> None:
    assert setting_label({}) == "default"


def test_the_label_of_a_setting_does_not_depend_on_its_order() -> None:
    assert setting_label({"lr": 0.01, "dropout": 0.7}) == setting_label({"dropout": 0.7, "lr": 0.01})


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_two_values_share_a_label_only_when_they_are_equal(first: float, second: float) -> None:
    assert (setting_label({"lr": first}) == setting_label({"lr": second})) == (repr(first) == repr(second))

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import bad_studies, tiny
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.registry import Option
from tiebreak.study.rules import check_options, setting_label
from tiebreak.study.schema import Study


@bad_studies.cases(bad_studies.BROKEN_RULES)
def test_a_broken_rule_is_one_line_with_file_key_and_remedy(content: dict[str, Any], line: str) -> None:
    with pytest.raises(TiebreakError) as caught:
        parsing.validate(Study, content, "bad.toml")
    assert str(caught.value).startswith(f"bad.toml: {line}")
    assert str(caught.value).isprintable()


def test_a_figure_may_be_of_validation_or_training() -> None:
    for metric in ("accuracy", "loss", "val_accuracy", "val_loss", "train_loss", "train_loss_running"):
        parsing.validate(Study, tiny.content(**bad_studies.reported(metric=metric)), "good.toml")


def test_the_quick_grid_may_lack_the_setting_of_a_figure() -> None:
    changes = {**bad_studies.TUNED, **bad_studies.reported(setting={"lr": 0.01}), "quick": {"grid": {"lr": [0.1]}}}
    study = parsing.validate(Study, tiny.content(**changes), "good.toml")
    assert study.quickened().settings() == [{"lr": 0.1}]


def test_an_option_with_a_whole_number_for_a_float_is_accepted() -> None:
    check_options("options", {"scale": 2}, {"scale": Option(default=1.0, line="")})


def test_an_option_may_be_bounded_on_one_side() -> None:
    known = {"width": Option(default=8, low=1, line="")}
    check_options("build", {"width": 10**9}, known)
    with pytest.raises(ValueError, match=r"build\.width: 0 is outside 1 to None"):
        check_options("build", {"width": 0}, known)


def test_nan_is_outside_any_bounds() -> None:
    with pytest.raises(ValueError, match="nan is outside"):
        check_options("options", {"scale": math.nan}, {"scale": Option(default=1.0, line="")})


def test_a_setting_without_hyper_parameters_is_called_default() -> None:
    assert setting_label({}) == "default"


def test_the_label_of_a_setting_does_not_depend_on_its_order() -> None:
    assert setting_label({"lr": 0.01, "dropout": 0.7}) == setting_label({"dropout": 0.7, "lr": 0.01})


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_two_values_share_a_label_only_when_they_are_equal(first: float, second: float) -> None:
    assert (setting_label({"lr": first}) == setting_label({"lr": second})) == (repr(first) == repr(second))

from __future__ import annotations

import math
from typing import Any

import pytest

from support import bad_studies, tiny
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.registry import Option
from tiebreak.study.rules import check_options
from tiebreak.study.schema import Study


@bad_studies.cases(bad_studies.BROKEN_RULES)
def test_a_broken_rule_is_one_line_with_file_key_and_remedy(bad: bad_studies.Bad) -> None:
    with pytest.raises(TiebreakError) as caught:
        parsing.validate(Study, bad.content, "bad.toml")
    bad.check(str(caught.value), "bad.toml")


def test_a_quick_option_that_only_some_designs_have_is_allowed() -> None:
    parsing.validate(Study, tiny.language_content(quick={"build": {"hidden": 8, "heads": 2}}), "good.toml")


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
    with pytest.raises(ValueError, match=r"build\.width: .*at least 1, not 0"):
        check_options("build", {"width": 0}, known)


def test_nan_is_never_within_bounds() -> None:
    with pytest.raises(ValueError, match=r"options\.scale: .*nan"):
        check_options("options", {"scale": math.nan}, {"scale": Option(default=1.0, line="")})


@pytest.mark.parametrize(
    ("changes", "key", "word"),
    [
        ({"budget": {"epochs": 1, "batch": 8}}, "budget.batch", "1"),
        (
            {"arms": [{"name": "one", "design": "lstm", "options": {"vocabulary": 50}}]},
            "arms[1].options.vocabulary",
            "study's options",
        ),
        (
            {"arms": [{"name": "one", "design": "lstm", "evaluation": {"training_mode": True}}]}
            | {"options": {"evaluation_trains": True}},
            "arms[1].evaluation.training_mode",
            "remove this key",
        ),
        (
            {"arms": [{"name": "one", "design": "lstm", "evaluation": {"training_mode": True}, "fixed": {"ema": 0.9}}]},
            "arms[1]",
            "training_mode",
        ),
        ({"quick": {"build_of": {"three": {}}}}, "quick.build_of", "'three'"),
        ({"quick": {"options": {"windows": 3}}}, "quick.options", "'window'"),
        ({"quick": {"fixed": {"lrr": 0.1}}}, "quick.fixed", "'lr'"),
        ({"quick": {"build": {"hiden": 8}}}, "quick.build", "'hidden'"),
        ({"quick": {"build_of": {"two": {"hidden": 0}}}}, "quick.build_of.two.hidden", "at least 1"),
    ],
)
def test_a_broken_rule_of_a_language_study_names_its_key(changes: dict[str, Any], key: str, word: str) -> None:
    with pytest.raises(TiebreakError) as caught:
        parsing.validate(Study, tiny.language_content(**changes), "bad.toml")
    assert str(caught.value).startswith(f"bad.toml: {key}: ")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("change", "key", "word"),
    [
        ({"primary": True}, ".primary", "arms"),
        ({"metrics": ["dl", "dl"]}, ".metrics", "twice"),
        ({"metrics": ["dl", "cer"]}, ".metrics", "cer"),
        ({"metrics": ["dl", "jacard"]}, ".metrics", "'jaccard'"),
    ],
)
def test_a_comparison_of_metrics_takes_different_metrics_where_higher_is_better(
    change: dict[str, Any], key: str, word: str
) -> None:
    arms = [{"name": "x", "design": "speech-lstm"}, {"name": "y", "design": "speech-attention"}]
    order = {"kind": "order", "arm": "x", "metrics": ["dl", "jaccard"], "margin": 0.1, **change}
    pair = {"a": "x", "b": "y", "primary": "primary" not in change}
    content = tiny.content(task="transcribe", data="spoken-numbers", metric="dl", arms=arms, comparisons=[pair, order])
    with pytest.raises(TiebreakError) as caught:
        parsing.validate(Study, content, "bad.toml")
    assert str(caught.value).startswith(f"bad.toml: comparisons[2]{key}: ")
    assert word in str(caught.value)

"""Studies of language models: what their files may say, and what becomes of it in a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import tiny
from tiebreak import api
from tiebreak.cli.use import use
from tiebreak.drive.runner import Machine
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.study.schema import Study


def content(**changes: Any) -> dict[str, Any]:
    small = {"embedding": 4, "hidden": 16}
    return tiny.content(
        **{
            "task": "language",
            "data": "./text",
            "metric": "perplexity",
            "margin": 1.0,
            "options": {"streams": 2, "window": 3},
            "budget": {"epochs": 1, "batch": 1},
            "arms": [
                {"name": "one", "design": "rnn-sigmoid", "build": small},
                {
                    "name": "two",
                    "design": "rnn-sigmoid",
                    "build": small,
                    "optimiser": {"kind": "sgd-summed"},
                    "options": {"window": 6},
                },
            ],
            "comparisons": [{"a": "one", "b": "two", "primary": True}],
            **changes,
        }
    )


def test_windows_that_are_too_long_in_one_arm_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    arms = content()["arms"]
    arms[1]["options"] = {"window": 4000}
    folder = tiny.write_text(tmp_path)
    study = Study.model_validate(content(arms=arms))
    with pytest.raises(TiebreakError, match="windows of 4,000 in 2 streams need 8,001"):
        make_plan(study, folder)
    with pytest.raises(TiebreakError, match="windows of 4,000 in 2 streams need 8,001"):
        api.run(study, tmp_path / "out", machine=Machine(data_dir=folder), listen=lambda message: None)
    assert not (tmp_path / "out").exists()


def test_an_arm_may_have_a_rule_and_a_window_of_its_own_and_the_terms_say_so(tmp_path: Path) -> None:
    plan = make_plan(Study.model_validate(content()), tiny.write_text(tmp_path))
    rules = {arm.name: plan.runs[next(iter(arm.runs.values()))].optimiser.kind for arm in plan.arms}
    assert rules == {"one": "sgd", "two": "sgd-summed"}
    terms = {term.name: term for term in plan.terms}
    assert not terms["untuned hyper-parameters"].equal
    assert "sgd-summed" in terms["untuned hyper-parameters"].value
    assert "window differs by arm" in terms["task options"].value
    assert plan.arms[0].shape == {"words": 9, "streams": 2, "window": 3}
    flops = [arm.flops or 0 for arm in plan.arms]
    assert flops[1] == 2 * flops[0] > 0  # of a window, which is twice as long
    assert [arm.cannot_fuse for arm in plan.arms] == ["", ""]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": {"epochs": 1, "batch": 8}}, "budget.batch: should be 1"),
        (
            {"arms": [{"name": "one", "design": "lstm", "options": {"vocabulary": 50}}]},
            r"arms\[1\].options.vocabulary: says how the data is read",
        ),
        ({"quick": {"build_of": {"three": {}}}}, "quick.build_of: unknown name 'three'"),
        ({"quick": {"options": {"windows": 3}}}, "quick.options: unknown name 'windows'"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Study.model_validate(content(**changes))


def test_the_quick_version_may_change_the_tasks_options_and_single_arms() -> None:
    quick = {"options": {"streams": 5}, "build": {"hidden": 32}, "build_of": {"two": {"hidden": 8}}}
    study = Study.model_validate(content(quick=quick)).quickened()
    assert study.options == {"streams": 5, "window": 3}
    assert [arm.build for arm in study.arms] == [{"embedding": 4, "hidden": 32}, {"embedding": 4, "hidden": 8}]


@pytest.mark.parametrize("name", ["language-model", "language-model-audited"])
def test_shipped_studies_are_valid_and_so_are_their_quick_versions(name: str) -> None:
    assert Study.load(name).quickened().seeds >= 6


def test_a_trained_run_of_any_window_continues_a_text(tmp_path: Path) -> None:
    machine = Machine(workers=1, data_dir=tiny.write_text(tmp_path))
    api.run(Study.model_validate(content(seeds=1)), tmp_path / "out", machine=machine, listen=lambda message: None)
    for arm in ("one", "two"):
        used = use(tmp_path / "out", "a b", arm=arm, how={"n": 3, "words": 4})
        assert [answer.text.startswith("a b") for answer in used.reply.answers] == [True] * 3
    with pytest.raises(TiebreakError, match="--beam: not an option of the task language; it has --temperature"):
        use(tmp_path / "out", "a b", how={"beam": 3})

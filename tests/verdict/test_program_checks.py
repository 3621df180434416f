"""Scores that give a program away: no seed, one set for validation and test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support import own_program
from support.own_program import how
from tiebreak import api
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan
from tiebreak.results.record import FinalRecord, Records, RunRecord
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study
from tiebreak.verdict.program_checks import program_warnings


def tally_of(made: Study, plan: Plan, scores: Mapping[str, tuple[float, float]]) -> Tally:
    """A study whose runs gave these accuracies on test and validation."""
    runs, finals = {}, {}
    for one, (test, val) in scores.items():
        runs[one] = RunRecord(identity=one, trajectory=plan.runs[one].trajectory, status="done", epoch=0)
        metrics = {"accuracy": test, "val_accuracy": val}
        final = FinalRecord(identity=one, evaluation="default", metrics=metrics, outcomes={}, seconds=0)
        finals[one] = {"default": final}
    return Tally(made, plan, Records(epochs={}, runs=runs, finals=finals))


@pytest.mark.parametrize(
    ("seed_matters", "val_is_test", "words"),
    [(True, False, []), (False, False, ["{seed}", "{seed}"]), (True, True, ["`val` equals `test`"])],
)
def test_what_the_scores_give_away(tmp_path: Path, seed_matters: bool, val_is_test: bool, words: list[str]) -> None:
    made = own_program.study(tmp_path, seeds=3)
    plan, scores = make_plan(made, None), dict[str, tuple[float, float]]()
    for one, run in plan.runs.items():
        test = 0.9 + 0.01 * seed_matters * run.seed
        scores[one] = test, test if val_is_test else test + 0.01
    found = program_warnings(tally_of(made, plan, scores))
    assert not any("setting was chosen" in line for line in found)  # there is one setting
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_only_the_arm_whose_validation_set_is_its_test_set_is_named(tmp_path: Path) -> None:
    made = own_program.study(tmp_path, seeds=4)
    plan, scores = make_plan(made, None), dict[str, tuple[float, float]]()
    for arm in plan.arms:
        for place, one in enumerate(arm.runs.values()):
            scores[one] = 0.5 + 0.01 * place, 0.5 + 0.01 * place + 0.1 * (arm.name == "high")
    (line,) = program_warnings(tally_of(made, plan, scores))
    assert line.startswith("low: `val` equals `test` in all 4 runs")


@pytest.mark.parametrize(("high", "warned"), [(91.5, True), (0.915, False), (1.0 + 1e-9, False)])
def test_a_per_cent_as_accuracy_is_named_with_its_arm(tmp_path: Path, high: float, warned: bool) -> None:
    made = own_program.study(tmp_path, seeds=2)
    plan, scores = make_plan(made, None), dict[str, tuple[float, float]]()
    for arm, score in zip(plan.arms, (high, 0.505), strict=True):
        scores |= dict.fromkeys(arm.runs.values(), (score, 0.5))
    found = [line for line in program_warnings(tally_of(made, plan, scores)) if "per cent" in line]
    assert len(found) == warned
    assert all(line.startswith("high: accuracy 91.5, but accuracy goes from 0 to 1") for line in found)
    assert all("margin (0.01)" in line for line in found)


def test_the_verdict_of_a_program_has_the_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = own_program.study(tmp_path, **how("same", seeds=3))
    result = api.run(made, tmp_path / "out", listen=lambda message: None, allow_program=True)
    text = " ".join(result.verdict.warnings)
    assert "{seed}" in text
    assert "`val` equals `test`" in text
    page = result.report.read_text()
    assert "not checked" in page
    assert "seems to ignore" in page
    assert api.check(tmp_path / "out").problems == []

"""Scores that give a program away: no seed, one set for validation and test."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import own_program
from support.own_program import how
from tiebreak import api
from tiebreak.plan.planner import make_plan
from tiebreak.results.record import FinalRecord, Records, RunRecord
from tiebreak.results.tally import Tally
from tiebreak.verdict.program_checks import program_warnings


@pytest.mark.parametrize(
    ("seed_matters", "val_is_test", "words"),
    [(True, False, []), (False, False, ["{seed}", "{seed}"]), (True, True, ["`val` equals `test`"])],
)
def test_what_the_scores_give_away(tmp_path: Path, seed_matters: bool, val_is_test: bool, words: list[str]) -> None:
    made = own_program.study(tmp_path, seeds=3)
    plan = make_plan(made, None)
    runs, finals = {}, {}
    for one, run in plan.runs.items():
        test = 90.0 + seed_matters * run.seed
        metrics = {"accuracy": test, "val_accuracy": test if val_is_test else test + 1}
        runs[one] = RunRecord(identity=one, trajectory=run.trajectory, status="done", epoch=0)
        final = FinalRecord(identity=one, evaluation="default", metrics=metrics, outcomes={}, seconds=0)
        finals[one] = {"default": final}
    found = program_warnings(Tally(made, plan, Records(epochs={}, runs=runs, finals=finals)))
    assert not any("setting was chosen" in line for line in found)  # there is one setting
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))


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

from __future__ import annotations

from pathlib import Path

import pytest

from support import own_program
from tiebreak import api
from tiebreak.drive.mixed_runs import refuse_mixed
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan


def test_a_metric_that_the_program_did_not_write_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    """Its runs were called failed, and the verdict was replaced."""
    study, out = own_program.study(tmp_path, metric="accuracy"), tmp_path / "out"

    def run(metric: str) -> str:
        changed = study.model_copy(update={"metric": metric})
        return api.run(changed, out, listen=lambda message: None, allow_program=True).verdict.metric.name

    assert run("accuracy") == "accuracy"
    before = (out / "study.toml").read_text(), (out / "verdict.json").read_text()
    with pytest.raises(TiebreakError, match=r"no test score 'auc', but accuracy, loss .*; ask for one of these"):
        run("auc")
    assert ((out / "study.toml").read_text(), (out / "verdict.json").read_text()) == before
    assert run("loss") == "loss"


def test_a_folder_without_runs_refuses_nothing(tmp_path: Path) -> None:
    study = own_program.study(tmp_path)
    refuse_mixed(study, make_plan(study, None), tmp_path, "bf16")

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from support import hand_made
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.manifest import STUDY_FILE, write_files
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.stored_study import changes, check_name, stored_line, stored_study
from tiebreak.study import parsing


def test_the_stored_study_comes_back_and_its_changes_are_named(tmp_path: Path) -> None:
    study = hand_made.study()
    assert stored_study(tmp_path) is None
    assert changes(study, tmp_path) == []
    (tmp_path / STUDY_FILE).write_text(parsing.to_toml(study))
    assert stored_study(tmp_path) == study
    assert changes(study.changed(seeds=9), tmp_path) == []
    assert changes(study.model_copy(update={"margin": 0.5}), tmp_path) == ["margin"]


@pytest.mark.parametrize("lost", [None, STUDY_FILE])
def test_the_folder_of_another_study_is_refused(tmp_path: Path, lost: str | None) -> None:
    study = hand_made.study()
    check_name(study, tmp_path)
    write_files(tmp_path, {STUDY_FILE: parsing.to_toml(study), PLAN_FILE: hand_made.plan(study).model_dump_json()})
    if lost is not None:
        (tmp_path / lost).unlink()
    check_name(study, tmp_path)
    with pytest.raises(TiebreakError, match=r"'by-hand', not 'other'.*--out"):
        check_name(hand_made.study(name="other"), tmp_path)


def test_runs_of_a_plan_that_are_stored_already_are_counted(tmp_path: Path) -> None:
    plan = hand_made.plan(hand_made.study())
    assert stored_line(plan, tmp_path) == ""
    known = [replace(hand_made.RUN, identity=identity) for identity in (*list(plan.runs)[:3], "of another study")]
    with closing(Store.create(tmp_path)) as store, store.transaction():
        for run in (*known[:2], replace(known[2], status="failed"), known[3]):
            store.add_run(run)
    assert stored_line(plan, tmp_path).startswith("2 of 12 runs are stored")
    (tmp_path / STORE_FILE).write_bytes(b"no store")
    assert "not counted" in stored_line(plan, tmp_path)

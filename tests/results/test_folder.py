from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from support import hand_made
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.results.folder import opened, read_plan, read_training_state
from tiebreak.results.manifest import STUDY_FILE, write_files
from tiebreak.results.record import EpochRecord, RunRecord
from tiebreak.results.store import Store
from tiebreak.study import parsing
from tiebreak.study.schema import Study


def write(folder: Path, study: Study) -> None:
    plan = hand_made.plan(study).model_dump_json()
    write_files(folder, {STUDY_FILE: parsing.to_toml(study), PLAN_FILE: plan})


def read(folder: Path) -> tuple[Study, Plan]:
    with opened(folder) as store:
        return read_plan(folder, store)


def test_study_and_plan_come_back(tmp_path: Path) -> None:
    study = hand_made.study()
    write(tmp_path, study)
    assert read(tmp_path) == (study, hand_made.plan(study))


def test_a_plan_of_another_version_of_the_study_is_refused(tmp_path: Path) -> None:
    write(tmp_path, hand_made.study(seeds=3))
    write_files(tmp_path, {STUDY_FILE: parsing.to_toml(hand_made.study(seeds=4))})
    with pytest.raises(TiebreakError, match=r"study\.toml.*another version"):
        read(tmp_path)


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    write(tmp_path, hand_made.study())
    path = tmp_path / PLAN_FILE
    path.write_text(path.read_text().replace("licence", "license"))
    with pytest.raises(TiebreakError, match=r"plan\.json.*damaged"):
        read(tmp_path)


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="nothing-here: no such folder"):
        read(tmp_path / "nothing-here")


def test_the_training_state_is_that_of_the_records(tmp_path: Path) -> None:
    write(tmp_path, hand_made.study())
    (first, second, *_) = hand_made.plan(hand_made.study()).runs.values()
    with closing(Store.create(tmp_path)) as store, store.transaction():
        for run, epochs in ((first, (1, 2)), (second, (1,))):
            for epoch in epochs:
                store.add_epoch(EpochRecord(trajectory=run.trajectory, epoch=epoch, metrics={}, seconds={}))
        store.add_run(RunRecord(identity=first.identity, trajectory=first.trajectory, status="done", epoch=2))
        store.add_choice(hand_made.CHOICE)
    plan, state = read_training_state(tmp_path)
    assert plan == hand_made.plan(hand_made.study())
    stored = {name: list(epochs) for name, epochs in state.epochs.items()}
    assert stored == {first.trajectory: [1, 2], second.trajectory: [1]}
    with closing(Store.open(tmp_path)) as store:
        records = store.records()
    assert (state.runs, state.choices) == (records.runs, records.choices)
    assert {name: sorted(epochs) for name, epochs in records.state.epochs.items()} == stored


def test_a_run_that_lacks_an_epoch_has_not_ended(tmp_path: Path) -> None:
    write(tmp_path, hand_made.study())
    (first, *_) = hand_made.plan(hand_made.study()).runs.values()
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_epoch(EpochRecord(trajectory=first.trajectory, epoch=2, metrics={}, seconds={}))
        store.add_run(RunRecord(identity=first.identity, trajectory=first.trajectory, status="done", epoch=2))
    _, state = read_training_state(tmp_path)
    assert state.runs == {}
    assert "epoch 1 is missing" in state.damaged[0]


def test_a_folder_of_compare_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("arm,seed,score\n")
    with pytest.raises(TiebreakError, match=r"tiebreak compare.*tiebreak open"), opened(tmp_path):
        pass

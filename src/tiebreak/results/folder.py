"""The study and the plan of a results folder, and how far its runs are: read without the records."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE, Plan, run_key
from tiebreak.results.record import TrainingState
from tiebreak.results.store import Store
from tiebreak.study.schema import Study
from tiebreak.system import collector_paused

STUDY_FILE = "study.toml"


def read_plan(folder: Path) -> tuple[Study, Plan]:
    """The study and its plan; a plan of another version of the study is refused."""
    if not folder.is_dir():
        raise TiebreakError(f"{folder}: no such folder; give the --out folder of `tiebreak run`")
    with collector_paused():
        plan = Plan.read(folder)
        path = folder / STUDY_FILE
        study = Study.load(str(path))
        keys = {run_key(setting, seed) for setting in study.settings() for seed in range(study.seeds)}
        if {arm.name: keys for arm in study.arms} != {arm.name: set(arm.runs) for arm in plan.arms}:
            raise TiebreakError(f"{path}: {PLAN_FILE} is of another version of this study; run the study again")
    return study, plan


def read_training_state(folder: Path) -> tuple[Plan, TrainingState]:
    """The plan, and which of its runs have ended."""
    _, plan = read_plan(folder)
    with collector_paused(), closing(Store.open(folder)) as store:
        return plan, store.training_state()

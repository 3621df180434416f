"""The study and the plan of a results folder, and how far its runs are: read without the records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE, Plan, run_key
from tiebreak.results.connection import WAIT
from tiebreak.results.gaps import without_gaps
from tiebreak.results.manifest import STUDY_FILE, module_names, require
from tiebreak.results.record import TrainingState
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.stored_study import load_study
from tiebreak.study.design_file import DESIGNS_FILE
from tiebreak.study.schema import Study
from tiebreak.system import collector_paused

SCORES_FILE = "scores.csv"  # of an --out folder of `tiebreak compare`


def require_results_folder(folder: Path) -> None:
    """Refuse what is no results folder, in the same words for every command."""
    if not folder.is_dir():
        what = "a file, not a folder" if folder.exists() else "no such folder"
        raise TiebreakError(f"{folder}: {what}; give the --out folder of `tiebreak run`")
    if not (folder / PLAN_FILE).is_file() and not (folder / STORE_FILE).is_file():
        if (folder / SCORES_FILE).is_file():
            hint = f"`tiebreak open {folder}` and `tiebreak export {folder}` read it, `tiebreak compare` renews it"
            raise TiebreakError(f"{folder}: an --out folder of `tiebreak compare`: it holds scores but no runs; {hint}")
        raise TiebreakError(f"{folder}: no {PLAN_FILE}; is this the --out folder of `tiebreak run`?")


@contextmanager
def opened(folder: Path, wait: float = WAIT) -> Iterator[Store]:
    """The store of a results folder, for reading; what is no results folder is refused."""
    require_results_folder(folder)
    with closing(Store.open(folder, wait)) as store:
        yield store


def read_plan(folder: Path, store: Store, *, identities: bool = True) -> tuple[Study, Plan]:
    """The study and its plan, as they were written; a plan of another version of the study is refused.

    Without `identities`, those of a plan with a stored digest are not computed again.
    """
    require(store, folder, (STUDY_FILE, PLAN_FILE, DESIGNS_FILE, *module_names(store)))
    plan = Plan.read(folder, covered=not identities and PLAN_FILE in store.files())
    path = folder / STUDY_FILE
    study = load_study(folder)
    keys = {
        arm.name: {run_key(setting, seed) for setting in study.settings(arm) for seed in range(study.seeds)}
        for arm in study.arms
    }
    if keys != {arm.name: set(arm.runs) for arm in plan.arms}:
        raise TiebreakError(f"{path}: {PLAN_FILE} is of another version of this study; run the study again")
    return study, plan


def read_training_state(folder: Path) -> tuple[Plan, TrainingState]:
    """The plan, and which of its runs have ended."""
    with collector_paused(), opened(folder) as store:
        _, plan = read_plan(folder, store, identities=False)
        return plan, without_gaps(store.training_state())

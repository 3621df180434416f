"""The study that a results folder holds already, compared with the one that is to run in it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.results.manifest import STUDY_FILE, is_recorded
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study import parsing
from tiebreak.study.design_file import DESIGNS_FILE
from tiebreak.study.schema import Study
from tiebreak.text import number_of

# More seeds extend the results, the designs are compared by their code, and the others are text or another version.
NOT_COMPARED = {"seeds", "until_decided", "designs_from", "question", "about", "quick"}


def stored_study(folder: Path) -> Study | None:
    """The study that the folder holds; None where there is none, or none that can be read: it is then written again."""
    try:
        return load_study(folder)
    except TiebreakError:
        return None


def load_study(folder: Path) -> Study:
    """The study of a results folder. Its designs are the copy in the folder, never a file elsewhere."""
    path = files.inside(folder, STUDY_FILE)
    if parsing.load_toml(files.read_text(path), str(path)).get("designs_from", DESIGNS_FILE) != DESIGNS_FILE:
        raise TiebreakError(f"{path}: designs_from should be {DESIGNS_FILE!r}, the copy in this folder")
    files.inside(folder, DESIGNS_FILE)
    return Study.load(str(path))


def check_name(study: Study, folder: Path) -> None:
    """Refuse a folder of another study, by its study file or, where that cannot be read, by its plan."""
    name, stored = study.name, stored_study(folder)
    if stored is not None:
        name = stored.name
    elif is_recorded(folder, PLAN_FILE):
        name = Plan.read(folder).study
    if name != study.name:
        raise TiebreakError(f"{folder}: holds the study {name!r}, not {study.name!r}; give another --out")


def changes(study: Study, folder: Path) -> list[str]:
    """The keys in which a study differs from the one in the folder, of those that decide what is trained or said."""
    stored = stored_study(folder)
    if stored is None:
        return []
    keys = (name for name in Study.model_fields if name not in NOT_COMPARED)
    return [name for name in keys if getattr(stored, name) != getattr(study, name)]


def stored_plan(folder: Path) -> Plan | None:
    """The plan that the folder holds; None where there is none that can be read."""
    try:
        return Plan.read(folder)
    except TiebreakError:
        return None


def stored_runs(folder: Path) -> tuple[set[str], set[str]]:
    """The runs that the folder has a result of, and the trajectories of which it has an epoch."""
    with closing(Store.open(folder)) as store:
        state = store.training_state()
    return {identity for identity, run in state.runs.items() if run.status != "failed"}, set(state.epochs)


def stored_line(plan: Plan, folder: Path) -> str:
    """How many runs of a plan a results folder has already, in words; empty where there is no such folder."""
    if not (folder / STORE_FILE).is_file():
        return ""
    try:
        kept = len(stored_runs(folder)[0] & plan.runs.keys())
    except TiebreakError as error:
        return f"the runs that are stored already were not counted: {error}"
    return f"{kept} of {number_of(len(plan.runs), 'run')} are stored already in {folder}"

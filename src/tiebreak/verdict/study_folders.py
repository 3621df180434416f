"""The results folders below a folder, each with its study, its stored verdict and its size: `tiebreak list`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.files import failure
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.folder import read_training_state
from tiebreak.results.manifest import is_recorded
from tiebreak.results.store import STORE_FILE
from tiebreak.results.stored_study import load_study
from tiebreak.verdict.model import VERDICT_FILE, Verdict


@dataclass(frozen=True, kw_only=True)
class StudyFolder:
    """A results folder. `verdict` None: the study has not been run to its end here, or `problem` says what is wrong."""

    path: Path
    study: str = ""
    question: str = ""
    planned: int = 0  # runs
    ended: int = 0
    verdict: Verdict | None = None
    problem: str = ""
    size: int  # bytes
    changed: datetime  # when a file of it was last written


def is_results_folder(path: Path) -> bool:
    """Whether `tiebreak run` has written here."""
    return (path / PLAN_FILE).is_file() or (path / STORE_FILE).is_file()


def find_studies(folder: Path) -> list[StudyFolder]:
    """The results folders directly in a folder, by name; or the folder itself, if it is one."""
    if not folder.is_dir():
        what = "a file, not a folder" if folder.exists() else "no such folder"
        raise TiebreakError(f"{folder}: {what}; give the folder that holds your results folders")
    if is_results_folder(folder):
        return [describe(folder)]
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise failure(folder, "cannot be read", error) from None
    return [found for path in inner if (found := _inner(path)) is not None]


def _inner(path: Path) -> StudyFolder | None:
    """A folder among others: None where it is no results folder, its problem where it may not be entered."""
    try:
        return describe(path) if is_results_folder(path) else None
    except OSError as error:
        problem = str(failure(path, "cannot be read", error))
        return StudyFolder(path=path, problem=problem, size=0, changed=datetime.fromtimestamp(0))


def describe(folder: Path) -> StudyFolder:
    """What a results folder holds. A damaged one is described by its problem."""
    size, changed = _size(folder)
    try:
        plan, state = read_training_state(folder)
        study = load_study(folder)
        ended = sum(identity in state.runs for identity in plan.runs)
        verdict = _verdict(folder, ended, len(plan.runs))
    except TiebreakError as error:
        return StudyFolder(path=folder, problem=str(error), size=size, changed=changed)
    return StudyFolder(
        path=folder,
        study=study.name,
        question=study.question,
        planned=len(plan.runs),
        ended=ended,
        verdict=verdict,
        size=size,
        changed=changed,
    )


def _verdict(folder: Path, ended: int, planned: int) -> Verdict | None:
    """The stored verdict, if it is as it was written and of these runs: a study that was stopped has an older one."""
    if not is_recorded(folder, VERDICT_FILE):
        return None
    verdict = Verdict.read(folder)
    return verdict if (verdict.finished, verdict.planned) == (ended, planned) else None


def _size(folder: Path) -> tuple[int, datetime]:
    """The bytes of all files in a folder, links not followed, and the time of the newest."""
    size, newest = 0, 0.0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(place, name))  # noqa: PTH118
            except OSError:
                continue  # a running study has just removed it
            size += found.st_size
            newest = max(newest, found.st_mtime) if name != ".lock" else newest
    return size, datetime.fromtimestamp(newest)

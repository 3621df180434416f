"""The verdict on a results folder: read, written, checked, and counted as a look at its study."""

from __future__ import annotations

import os
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.resolve import comparison_count
from tiebreak.report.page import document
from tiebreak.results.check import Checked
from tiebreak.results.check import check as check_folder
from tiebreak.results.folder import opened, read_plan
from tiebreak.results.gaps import without_gaps
from tiebreak.results.look_history import record_stored_look
from tiebreak.results.manifest import is_recorded, write_files
from tiebreak.results.misfit import explain_misfit
from tiebreak.results.seal import seal
from tiebreak.results.store import STORE_FILE
from tiebreak.study_result import Result
from tiebreak.system import collector_paused
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import VERDICT_FILE, Verdict
from tiebreak.verdict.statistics import least_seeds


def conclude(folder: Path, *, rewrite: bool = False) -> Result:
    """Make the verdict of a folder from its records; write it, and the report if it is not current (or `rewrite`)."""
    if not os.access(folder, os.W_OK) and folder.is_dir():
        raise TiebreakError(f"{folder}: cannot be written; `tiebreak report` with --out writes the report elsewhere")
    result = open_result(folder)
    contents = {VERDICT_FILE: result.verdict.to_json()}
    report = (document.HTML_FILE, document.MARKDOWN_FILE)
    with collector_paused():
        shown = document.inputs_digest(result.plan, result.records, result.verdict)
        if rewrite or not (is_recorded(folder, *report) and document.is_current(folder, shown)):
            contents |= document.contents(result.study, result.plan, result.records, result.verdict)
    count_look(folder)
    write_files(folder, contents)
    seal(folder / STORE_FILE)
    return result


def open_result(folder: str | Path) -> Result:
    """Read a results folder: nothing is trained and nothing written.

    Damaged records are left out, and the verdict's warnings say so. A damaged study or plan is refused.
    """
    folder = Path(folder)
    with collector_paused(), opened(folder) as store:
        study, plan = read_plan(folder, store)
        records = without_gaps(store.records())
    with collector_paused(), explain_misfit(study.name):
        return Result(folder, study, plan, records, make_verdict(study, plan, records))


def count_look(folder: Path) -> None:
    """Store that a verdict is made on what the folder holds, if all its runs have ended."""
    record_stored_look(folder, lambda study: least_seeds(comparison_count(study)))


def check(folder: str | Path) -> Checked:
    """Verify a results folder: what was compared, and a line for each problem."""
    folder = Path(folder)
    checked = check_folder(folder)
    if checked.problems or not (folder / VERDICT_FILE).is_file():
        return checked
    stored, found = Verdict.read(folder), open_result(folder).verdict
    if stored != found:
        where = folder / VERDICT_FILE
        if stored.is_of_earlier_version():
            checked.notes.append(f"{where}: of an earlier version of Tiebreak; `tiebreak report` rewrites it")
        elif is_recorded(folder, VERDICT_FILE):  # as it was written, but the study has gone on
            line = "not of the present records: a study runs here or was stopped"
            checked.notes.append(f"{where}: {line}; `tiebreak run` or `report` rewrites it")
        else:
            checked.problems.append(f"{where}: not of the present records; `tiebreak report` rewrites it")
    return checked

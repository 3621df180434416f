"""`tiebreak check`: compares a results folder with the digests in its store, and says what it compared."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.checkpoint_file import CHECKPOINTS, checkpoint_problem
from tiebreak.results.connection import DamagedStoreError, log_of
from tiebreak.results.folder import require_results_folder
from tiebreak.results.gaps import without_gaps
from tiebreak.results.heal import without_checkpoint
from tiebreak.results.manifest import FILES, file_problems
from tiebreak.results.record import CheckpointRecord
from tiebreak.results.seal import SEAL_FILE
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.store_limits import check_store_files
from tiebreak.results.write_log import log_problem
from tiebreak.study.program_keys import PROGRAM
from tiebreak.text import listed, number_of


class Checked(NamedTuple):
    """What `check` found: how many digests it compared, a line for each problem, and remarks that are no problem."""

    compared: int
    problems: list[str]
    what: str  # what was compared, in words
    notes: list[str]


def check(folder: Path) -> Checked:
    """Compare the files, rows and checkpoints of a folder with their digests. Safe beside a running study."""
    require_results_folder(folder)
    check_store_files(folder / STORE_FILE)
    log = log_problem(log_of(folder / STORE_FILE))  # before SQLite reads it
    try:
        store = Store.open(folder)
    except DamagedStoreError as error:
        return Checked(0, [str(error)], "nothing", [])
    with closing(store):
        named = store.files()
        problems = [*([log] if log else []), *file_problems(store, folder).values(), *store.damage()]
        records = store.records()
        problems += [f"{store.path}: {line}" for line in without_gaps(records).damaged if line not in records.damaged]
        runs, notes = 0, list[str]()
        try:
            plan = Plan.read(folder)  # reading computes every identity anew
        except TiebreakError as error:
            if not any(line.startswith(str(folder / "plan.json")) for line in problems):
                problems.append(str(error))
        else:
            runs = len(plan.runs)
            for run in without_checkpoint(store, records.runs):
                if run.identity in plan.runs and plan.runs[run.identity].task != PROGRAM:
                    line = f"no checkpoint of epoch {run.epoch} of {plan.runs[run.identity].label} is recorded"
                    problems.append(f"{store.path}: {line}; `tiebreak run` makes it again")
        recorded = store.checkpoints()
        states = [record for record in recorded if not record.pruned]
        if pruned := len(recorded) - len(states):
            notes.append(f"{folder}: {number_of(pruned, 'checkpoint')} removed by `tiebreak prune`, as recorded")
        problems += [line for record in states if (line := _checkpoint_problem(store, folder, record))]
        rows = store.rows()
    without = [name for name in FILES if name not in named and (folder / name).is_file()]
    if without:
        notes.append(f"{folder}: no digest is recorded of {listed(without)}, not compared; `tiebreak run` records them")
    sealed = (folder / SEAL_FILE).is_file()
    if not sealed:
        notes.append(f"{folder}: no {SEAL_FILE}, so the unused bytes of {STORE_FILE} were not compared")
    parts = [", ".join(named)] if named else []
    parts += [STORE_FILE] if sealed else []
    parts += [f"{number_of(rows, 'row')} of {STORE_FILE}", f"{number_of(runs, 'run')} of the plan"]
    parts += [number_of(len(states), "file") + f" in {CHECKPOINTS}"]
    return Checked(len(named) + sealed + rows + runs + len(states), problems, listed(parts), notes)


def _checkpoint_problem(store: Store, folder: Path, record: CheckpointRecord) -> str:
    """What is wrong with a checkpoint; nothing if a running study has replaced it meanwhile."""
    problem = checkpoint_problem(folder, record)
    return problem if problem and record in store.checkpoints([record.identity]) else ""

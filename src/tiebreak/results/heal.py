"""What `tiebreak run` does about damage: set the damaged part aside, so that it is made again.

Damaged files go to `damaged/N/` in the results folder, damaged rows to the store's table `damaged`. A run is trained
again where its record, one of its epochs or its last checkpoint is damaged or gone; nothing else is.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE, Run
from tiebreak.results.checkpoint_file import CHECKPOINTS, checkpoint_folder, checkpoint_path, checkpoint_problem
from tiebreak.results.connection import DamagedStoreError, connect, log_of
from tiebreak.results.gaps import epochs_before_gap, lacks_epochs
from tiebreak.results.manifest import STUDY_FILE, file_problems
from tiebreak.results.migration import SCHEMA_VERSION
from tiebreak.results.record import RunRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.store_header import repair_header
from tiebreak.results.store_limits import check_store_files, refuse_programs
from tiebreak.results.write_log import log_problem
from tiebreak.study.program_keys import PROGRAM
from tiebreak.text import number_of

DAMAGED = "damaged"
REBUILT = ".rebuilt"  # a folder: the new store, until it is complete


class Aside:
    """A new folder `damaged/N`, made when the first file is put into it."""

    def __init__(self, folder: Path) -> None:
        taken = [int(path.name) for path in (folder / DAMAGED).glob("*") if path.name.isdecimal()]
        self.folder = folder / DAMAGED / str(max(taken, default=0) + 1)

    def move(self, path: Path, name: str = "") -> str:
        """Move a file there, if there is one, under another name if given. A piece of a sentence that says where."""
        if not path.is_symlink() and not path.exists():
            return ""
        self.folder.mkdir(parents=True, exist_ok=True)
        path.replace(self.folder / (name or path.name))
        return f" (kept in {self.folder})"

    def copy(self, path: Path) -> Path:
        """Copy a file there, if there is one. Its new place."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            shutil.copyfile(path, self.folder / path.name)
        return self.folder / path.name


def heal(folder: Path) -> list[str]:
    """Set aside what is damaged in a folder and sweep what a killed run left; a line for each damaged part.

    To be called by the writer before it reads the folder. Files and rows that are missing are made again by `run`.
    """
    check_store_files(folder / STORE_FILE)
    if (folder / DAMAGED).is_symlink():
        raise TiebreakError(f"{folder / DAMAGED}: a symbolic link, which is not followed; remove it")
    _sweep(folder)
    aside = Aside(folder)
    lines = _heal_store(folder, aside)
    if not (folder / STORE_FILE).is_file():
        return lines
    with closing(Store.open(folder)) as store:
        if store.schema < SCHEMA_VERSION:
            what = f"{store.path}: schema {store.schema} becomes {SCHEMA_VERSION}: steps are timed in turns"
            what += "; looks at the results are counted" if store.schema < 3 else ""
            digests = "; files and checkpoints get digests; what changed before now is not noticed"
            lines.append(f"{what}{digests if store.schema == 1 else ''}")
    with closing(Store.create(folder)) as store:
        for name, line in file_problems(store, folder).items():
            lines.append(line + aside.move(folder / name, name.replace("/", ".")))
        with store.transaction():
            lines += [f"{line}; set aside" for line in store.set_aside()]
        lines += _heal_checkpoints(store, folder, aside)
        lines += _drop_after_gaps(store)
    return lines


def drop_without_checkpoint(folder: Path, planned: Mapping[str, Run]) -> list[str]:
    """Have the planned runs trained again that are done but have no checkpoint of their last epoch. A line for each."""
    with closing(Store.create(folder)) as store, store.transaction():
        return [
            _drop(store, run, f"{planned[run.identity].label}: its checkpoint of epoch {run.epoch} is gone")
            for run in without_checkpoint(store, store.records().runs)
            if run.identity in planned and planned[run.identity].task != PROGRAM  # a program keeps its own states
        ]


def without_checkpoint(store: Store, runs: Mapping[str, RunRecord]) -> list[RunRecord]:
    """The finished runs that have no checkpoint of their last epoch."""
    kept = {(record.trajectory, record.epoch) for record in store.checkpoints()}
    return [run for run in runs.values() if run.status == "done" and (run.trajectory, run.epoch) not in kept]


def _sweep(folder: Path) -> None:
    """Remove the temporary files of a killed run."""
    for place in (folder, checkpoint_folder(folder)):
        for part in place.glob(".*.part") if place.is_dir() else ():
            part.unlink(missing_ok=True)
    if (folder / REBUILT).is_symlink():
        (folder / REBUILT).unlink()
    shutil.rmtree(folder / REBUILT, ignore_errors=True)


def _heal_store(folder: Path, aside: Aside) -> list[str]:
    """Replace a store that SQLite cannot read, or that is not consistent, by a new one with its intact rows."""
    path = folder / STORE_FILE
    states = list((folder / CHECKPOINTS).glob("*.safetensors"))
    if not path.is_file() or not path.stat().st_size:
        if not states and not (folder / PLAN_FILE).is_file() and not (folder / STUDY_FILE).is_file():
            path.unlink(missing_ok=True)  # empty: a command was killed before it wrote anything
            return []  # a new folder
        for each in (path, log_of(path), *states):
            aside.move(each)
        kept = f" (the checkpoints are kept in {aside.folder})" if states else ""
        lost = "all records are lost, every run is trained again and earlier verdicts no longer count as looks"
        return [f"{path}: missing or empty: {lost}{kept}"]
    lines = list[str]()
    if log := log_problem(log_of(path)):  # before SQLite reads it
        lines.append(f"{log} (a copy is kept in {aside.copy(log_of(path)).parent})")
    try:
        with closing(Store.open(folder)) as store:
            problems = store.file_damage()
    except DamagedStoreError as error:
        problems = [str(error)]
    return [*lines, _rebuild(folder, aside, problems[0])] if problems else lines


def _rebuild(folder: Path, aside: Aside, problem: str) -> str:
    path = folder / STORE_FILE
    aside.copy(log_of(path))
    whole = aside.copy(path)
    (folder / REBUILT).mkdir()
    intact = repair_header(whole, folder / REBUILT / "source")
    with closing(Store.create(folder / REBUILT)) as store, closing(connect(intact)) as source, store.transaction():
        with suppress(sqlite3.Error):  # a list of tables that cannot be read is damage
            refuse_programs(path, source)
        rows = store.copy_rows(source)
    for each in (log_of(path), path.with_name(f"{path.name}-shm")):
        each.unlink(missing_ok=True)
    (folder / REBUILT / STORE_FILE).replace(path)
    shutil.rmtree(folder / REBUILT)
    what = problem.partition(";")[0]
    return f"{what}; {number_of(rows, 'intact row')} recovered (the damaged file is kept in {aside.folder})"


def _heal_checkpoints(store: Store, folder: Path, aside: Aside) -> list[str]:
    """Set damaged checkpoints aside; a run that is not finished continues from the one before."""
    records = [record for record in store.checkpoints() if not record.pruned]
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter
        problems = list(pool.map(lambda record: checkpoint_problem(folder, record), records))
    lines = []
    for record, problem in zip(records, problems, strict=True):
        if problem:
            with store.transaction():
                store.drop_checkpoint(record)
            kept = ""
            with suppress(TiebreakError):  # a record that names a file outside: the line says so
                kept = aside.move(checkpoint_path(folder, record))
            lines.append(problem + kept)
    return lines


def _drop_after_gaps(store: Store) -> list[str]:
    """Have runs trained again from before the first epoch that is missing in the records."""
    lines = []
    with store.transaction():
        records = store.records()
        for record in store.checkpoints():
            if record.epoch > epochs_before_gap(records.epochs.get(record.trajectory, {})):
                store.drop_checkpoint(record)
        for run in records.runs.values():
            if lacks_epochs(run, records.epochs.get(run.trajectory, {})):
                lines.append(_drop(store, run, f"{store.path}: run {run.identity} lacks an epoch"))
    return lines


def _drop(store: Store, run: RunRecord, line: str) -> str:
    store.drop_run(run.identity)
    return f"{line}; the run is trained again"

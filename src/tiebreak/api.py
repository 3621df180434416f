"""A study in one call: plan, records, verdict, report. The command line calls the same functions."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from tiebreak.cli.progress import progress_listener
from tiebreak.drive.local_workers import Pool
from tiebreak.drive.machine import Machine, check_precision, reached
from tiebreak.drive.messages import Note
from tiebreak.drive.mixed_runs import refuse_mixed
from tiebreak.drive.progress_file import progress_file
from tiebreak.drive.runner import Listener, open_driver, open_workers
from tiebreak.errors import TiebreakError
from tiebreak.outcome import check, conclude, count_look, open_result
from tiebreak.plan.planner import data_checksum, design_modules, find_plan
from tiebreak.plan.retraining import explain_retraining
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.program.calls import Calls
from tiebreak.program.consent import commands
from tiebreak.program.program_driver import check_start, open_program_driver
from tiebreak.results.foreign_files import refuse_foreign_files
from tiebreak.results.heal import drop_without_checkpoint, heal
from tiebreak.results.lock import locked
from tiebreak.results.look_history import looks_kept
from tiebreak.results.manifest import STUDY_FILE, is_recorded, require_folder_file, write_files
from tiebreak.results.seal import is_sealed, sealed_on_error
from tiebreak.results.store import STORE_FILE
from tiebreak.results.stored_study import changes, check_name, stored_plan, stored_runs, stored_study
from tiebreak.seed_batches import first_batch, train_until_decided, trained_anew
from tiebreak.study import parsing
from tiebreak.study.design_file import DESIGNS_FILE, designs_are_code
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.registry import OWN_TASK
from tiebreak.study.schema import Study
from tiebreak.study_result import Result

__all__ = ["Result", "check", "conclude", "open_result", "prepare", "run"]


def prepare(study: Study, folder: Path, data_dir: Path | None, machine: Machine | None = None) -> Plan:
    """Write the resolved study and its plan into the folder; an unchanged plan is reused.

    A user's designs are copied beside them, so that the folder stays complete when the original moves or changes.
    Nothing is written before the plan is made: a network that cannot be built leaves nothing behind.
    """
    check_name(study, folder)
    contents = design_modules(study)
    plan = find_plan(study, folder if is_recorded(folder, PLAN_FILE) else None, data_dir)
    if study.designs_from is not None:
        if design_modules(study) != contents:
            raise TiebreakError(f"{study.designs_from}: changed while the plan was made; run the study again")
        study = study.model_copy(update={"designs_from": DESIGNS_FILE})
        plan = plan.model_copy(update={"designs_from": str((folder / DESIGNS_FILE).resolve())})
    refuse_mixed(study, plan, folder, machine.precision if machine else None)
    contents |= {STUDY_FILE: parsing.to_toml(study), PLAN_FILE: plan.model_dump_json(indent=1) + "\n"}
    write_files(folder, contents)
    return plan


def run(  # noqa: PLR0913  every option of the command that a script needs, by keyword
    study: Study | str | Path,
    out: str | Path,
    *,
    quick: bool = False,
    until_decided: bool = False,
    max_seeds: int | None = None,
    machine: Machine | None = None,
    listen: Listener | None = None,
    allow_program: bool = False,
    calls: Calls | None = None,
    on: str | None = None,
) -> Result:
    """Train what is missing in the folder `out` and answer the study's question.

    `study` may be the name of a built-in study or the path of a study file. `quick` runs its small version.
    `until_decided` trains seeds in batches until the primary comparison is decided, at most `max_seeds` (60).
    `listen` gets every message of the training; without it, progress is shown on the terminal or in the notebook.
    `on` names a cluster to train on instead of this machine: "ray" or "ray://HOST:PORT".
    `allow_program` lets the command of a study with `task = "program"` run; `calls` are functions for it (`compare`).
    """
    study = study if isinstance(study, Study) else Study.load(study)
    study = study.quickened() if quick else study
    study = study.growing(until_decided=until_decided, max_seeds=max_seeds)
    machine = machine or Machine()
    machine = replace(machine, on=on) if on else machine
    if listen is None:
        with progress_listener(Path(out)) as progress:
            return run(
                study, out, machine=machine, listen=progress.on_message, allow_program=allow_program, calls=calls
            )
    if not str(out):
        raise TiebreakError("out: the name of the results folder is empty")
    folder = Path(out)
    if study.task == PROGRAM:
        check_start(study, machine, allow=allow_program or calls is not None)
    check_precision(study, machine.precision)
    refuse_foreign_files(folder, design_modules(study))
    _read_data(study, machine, listen)
    first_batch(study, folder)  # so does this
    with (
        nullcontext() if study.task == PROGRAM else open_workers(machine) as workers,  # they start meanwhile
        reached(machine),
        locked(folder, lambda text: listen(Note(text=text))),
        progress_file(folder, listen) as tell,
    ):
        for line in _users_code(study):
            tell(Note(text=line))
        if study.designs_from is not None:
            require_folder_file(Path(study.designs_from))  # the copy in a folder, if the study is that of the folder
        if is_recorded(folder, STUDY_FILE):
            check_name(study, folder)  # before anything is set aside
        before, sealed = stored_plan(folder), is_sealed(folder / STORE_FILE)
        damaged = heal(folder)
        count_look(folder)  # before another number of seeds replaces the study
        study = first_batch(study, folder)
        if (folder / STUDY_FILE).is_file() and stored_study(folder) is None:
            damaged.append(f"{folder / STUDY_FILE}: cannot be read; written again")
        changed = changes(study, folder)
        with sealed_on_error(folder / STORE_FILE, when=sealed and not damaged):
            plan = prepare(study, folder, machine.data_dir, machine)
            if (fewer := trained_anew(study, plan, folder)) != study:
                study, plan = fewer, prepare(fewer, folder, machine.data_dir)
        for line in (*damaged, *drop_without_checkpoint(folder, plan.runs)):
            tell(Note(text=line))
        if changed:
            keys = ", ".join(changed)
            tell(Note(text=f"{folder}: the study has changed ({keys}) since it was run here: its answer is replaced"))
        if again := explain_retraining(before, plan, *stored_runs(folder)):
            tell(Note(text="; ".join(filter(None, [f"{folder}: {again}", looks_kept(folder, study, plan)]))))
        tried = set[str]()
        train = partial(_train, folder=folder, machine=machine, listen=tell, calls=calls, workers=workers, tried=tried)
        if study.until_decided is not None:
            replan = partial(prepare, folder=folder, data_dir=machine.data_dir)
            study, plan = train_until_decided(study, plan, folder, tell, replan, train)
        train(study, plan)
        return conclude(folder)


def _users_code(study: Study) -> list[str]:
    """What code of the user's is going to run. That of an own task has run already (`_read_data`)."""
    if study.task == PROGRAM:
        return [f"running {line}: your own code, with all your rights" for line in commands(study)]
    return [designs_are_code(study.designs_from)] if study.designs_from and study.task != OWN_TASK else []


def _read_data(study: Study, machine: Machine, listen: Listener) -> None:
    """Fails before the folder is made. The data of an own task is read by its code, which is said before it runs."""
    if study.task == OWN_TASK:
        listen(Note(text=designs_are_code(str(study.designs_from))))
    data_checksum(study, machine.data_dir)


def _train(
    study: Study,
    plan: Plan,
    *,
    folder: Path,
    machine: Machine,
    listen: Listener,
    calls: Calls | None,
    workers: Pool | None,
    tried: set[str],
) -> None:
    """Train what is missing; what failed in this command (of the runs `tried`) once. At the end make the exhibits."""
    done = plan.runs.keys() <= tried  # all batches of a study that takes seeds until it is decided
    if study.task == PROGRAM:
        with open_program_driver(study, plan, folder, machine, listen, calls) as programs:
            programs.train(tried)
    else:
        with open_driver(plan, folder, machine, listen, workers) as driver:
            driver.train(tried)
            if done or study.until_decided is None:
                driver.make_exhibits(study)
    tried.update(plan.runs)

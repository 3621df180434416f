"""A study in one call: plan, records, verdict, report. The command line calls the same functions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tiebreak import files
from tiebreak.cli.progress import ProgressListener
from tiebreak.drive.messages import Note
from tiebreak.drive.runner import Listener, Machine, open_driver
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import data_checksum, find_plan
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.report.page import document
from tiebreak.results.check import check as check_folder
from tiebreak.results.folder import STUDY_FILE, read_plan
from tiebreak.results.lock import locked
from tiebreak.results.record import Records
from tiebreak.results.store import Store
from tiebreak.study import parsing
from tiebreak.study.schema import Study
from tiebreak.system import collector_paused
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import VERDICT_FILE, Verdict

DESIGNS_FILE = "designs.py"


@dataclass(frozen=True)
class Result:
    """The content of a results folder. A notebook displays it as the answer and the tables."""

    folder: Path
    study: Study
    plan: Plan
    records: Records
    verdict: Verdict

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / document.HTML_FILE

    def _repr_html_(self) -> str:
        return document.fragment(self.verdict)


def prepare(study: Study, folder: Path, data_dir: Path | None) -> Plan:
    """Write the resolved study and its plan into the folder; an unchanged plan is reused.

    A user's designs are copied beside them, so that the folder stays complete when the original moves or changes.
    """
    path = folder / STUDY_FILE
    stored = Study.load(str(path)).name if path.is_file() else study.name
    if stored != study.name:
        raise TiebreakError(f"{folder}: holds the study {stored!r}, not {study.name!r}; give another --out")
    written = study
    if study.designs_from is not None:
        text = files.read_text(Path(study.designs_from))
        copy = files.write(folder / DESIGNS_FILE, text)
        study = study.model_copy(update={"designs_from": str(copy.resolve())})
        written = study.model_copy(update={"designs_from": DESIGNS_FILE})
    plan = find_plan(study, folder, data_dir)
    files.write(path, parsing.to_toml(written))
    files.write(folder / PLAN_FILE, plan.model_dump_json(indent=1) + "\n")
    return plan


def run(study: Study, out: str | Path, *, machine: Machine | None = None, listen: Listener | None = None) -> Result:
    """Train what is missing in the folder `out` and answer the study's question.

    `listen` gets every message of the training; without it, progress is shown on the terminal or in the notebook.
    """
    if listen is None:
        from rich.console import Console

        with ProgressListener(Console()) as progress:
            return run(study, out, machine=machine, listen=progress.on_message)
    folder, machine = Path(out), machine or Machine()
    _check_device(machine)
    data_checksum(study, machine.data_dir)  # fails before the folder is made
    with locked(folder, lambda text: listen(Note(text=text))):
        if study.designs_from is not None:
            listen(Note(text=f"running {study.designs_from}: the designs it defines are code, with all your rights"))
        changed = changes(study, folder)
        plan = prepare(study, folder, machine.data_dir)
        if changed:
            text = f"{folder}: the study has changed since it was run here ({', '.join(changed)})"
            listen(Note(text=f"{text}; runs that are still part of it are kept, its earlier answer is replaced"))
        with open_driver(plan, folder, machine, listen) as driver:
            driver.train()
            driver.make_exhibits(study)
        return conclude(folder)


def changes(study: Study, folder: Path) -> list[str]:
    """The keys in which a study differs from the one in the folder; the number of seeds is not compared."""
    path = folder / STUDY_FILE
    if not path.is_file():
        return []
    stored = Study.load(str(path))
    keys = (name for name in Study.model_fields if name not in ("seeds", "designs_from"))  # designs: there is a copy
    return [name for name in keys if getattr(stored, name) != getattr(study, name)]


def _check_device(machine: Machine) -> None:
    if machine.device == "cpu":
        return
    import torch

    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
        raise TiebreakError(f"--device cuda: torch {torch.__version__} ({built}) sees no GPU here; use --device cpu")


def conclude(folder: Path, *, rewrite: bool = False) -> Result:
    """Make the verdict of a folder from its records; write it, and the report if it is not current or `rewrite`."""
    result = open_result(folder)
    files.write(folder / VERDICT_FILE, result.verdict.to_json())
    with collector_paused():
        shown = document.inputs_digest(result.plan, result.records, result.verdict)
        if rewrite or not document.is_current(folder, shown):
            document.write_report(folder, result.study, result.plan, result.records, result.verdict)
    return result


def open_result(folder: str | Path) -> Result:
    """Read a results folder: nothing is trained and nothing written."""
    folder = Path(folder)
    study, plan = read_plan(folder)
    with collector_paused():
        with closing(Store.open(folder)) as store:
            records = store.records()
        return Result(folder, study, plan, records, make_verdict(study, plan, records))


def check(folder: str | Path) -> tuple[int, list[str]]:
    """Verify a results folder: how many hashes were compared, and a line for each problem."""
    folder = Path(folder)
    compared, problems = check_folder(folder)
    if not problems and (folder / VERDICT_FILE).is_file():
        compared += 1
        if Verdict.read(folder) != open_result(folder).verdict:
            problems.append(f"{folder / VERDICT_FILE}: differs from the records; `tiebreak report` rewrites it")
    return compared, problems

"""What a job needs of the driver's machine: the user's designs, the files of the data set, checkpoints. No Ray.

A machine of the cluster gets copies and never a path of the driver's machine, unless it sees the same files: a results
folder in which it can read a token that the driver has just written, a data set with the same names, sizes and times.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tiebreak import files
from tiebreak.cluster.parcels import Parcel, Put, pack, stamp
from tiebreak.data import families
from tiebreak.data.sources import SOURCES
from tiebreak.data.user_paths import find_user_path
from tiebreak.drive.messages import Job
from tiebreak.errors import StopStudyError, TiebreakError
from tiebreak.plan.code_identity import Sources
from tiebreak.plan.runs import Plan
from tiebreak.results.checkpoint_file import checkpoint_folder, read_checkpoint
from tiebreak.results.record import CheckpointRecord
from tiebreak.study.design_file import DESIGNS_FILE
from tiebreak.study.own_task_keys import NO_DATA
from tiebreak.study.registry import is_path

TOKEN_FILE = ".cluster-token"

Contents = Mapping[str, bytes]  # of checkpoints, by file name


@dataclass(frozen=True)
class Seen:
    """What of the driver's files a machine sees as they are."""

    folder: bool
    data: bool


@dataclass(frozen=True)
class Question:
    """Where the driver's files lie on its own machine, and how to recognise them."""

    token_file: str
    token: str
    data: Mapping[str, str]  # name -> path
    data_stamp: str

    def answer(self) -> Seen:
        """What this machine sees of them."""
        try:
            folder = Path(self.token_file).read_text("utf-8") == self.token
        except (OSError, ValueError):
            folder = False
        there = stamp({name: Path(path) for name, path in self.data.items()}) if folder and self.data else ""
        return Seen(folder=folder, data=not self.data or (bool(there) and there == self.data_stamp))


@dataclass(frozen=True)
class Kit:
    """What goes to a machine with a job. None: it has it, or the job needs nothing."""

    in_place: bool  # the results folder is used as it is
    designs: Parcel | None
    data: Parcel | None
    checkpoints: Contents


class Supplies:
    """What the jobs of a plan need of the driver's machine. Each parcel is packed when first needed, and once."""

    def __init__(self, plan: Plan, folder: Path, data_dir: Path | None, put: Put) -> None:
        self._folder, self._put = folder.resolve(), put
        first = next(iter(plan.runs.values()), None)
        self._data = data_roots(first.data, data_dir) if first is not None else {}
        self._designs = design_roots(plan.designs_from)
        self._parcels: dict[str, Parcel] = {}

    @contextmanager
    def question(self) -> Iterator[Question]:
        """The question to each machine, with its token in the results folder."""
        path, token = self._folder / TOKEN_FILE, secrets.token_hex(16)
        files.write(path, token)
        try:
            data = {name: str(place) for name, place in self._data.items()}
            yield Question(str(path), token, data, stamp(self._data) if data else "")
        finally:
            path.unlink(missing_ok=True)

    def absolute(self, job: Job) -> Job:
        """The job with complete paths of the driver's machine, for those that see them; others replace them."""
        job = replace(job, folder=str(self._folder), checksums=None)
        return with_data(job, next(iter(self._data.values()))) if self._data else job

    def kit(self, seen: Seen, checkpoints: Contents) -> Kit:
        """What a machine that sees this much needs with a job."""
        return Kit(
            in_place=seen.folder,
            designs=None if seen.folder or not self._designs else self._parcel("designs", self._designs),
            data=None if seen.data or not self._data else self._parcel("data", self._data),
            checkpoints={} if seen.folder else checkpoints,
        )

    def _parcel(self, kind: str, roots: Mapping[str, Path]) -> Parcel:
        if kind not in self._parcels:
            self._parcels[kind] = pack(roots, self._put)
        return self._parcels[kind]


def design_roots(designs_from: str | None) -> dict[str, Path]:
    """The user's design file and the modules beside it that it imports, as a results folder names them."""
    if designs_from is None:
        return {}
    path = Path(designs_from)
    helpers = {each.relative_to(path.parent).as_posix(): each for each in Sources().helper_files(path)}
    return {**helpers, DESIGNS_FILE: path}


def data_roots(name: str, data_dir: Path | None) -> dict[str, Path]:
    """The files and folders of a data set here, by the names under which `load` finds them. Embedded: none."""
    if is_path(name):
        path = find_user_path(name, data_dir).resolve()
        return {path.name: path}
    if name == NO_DATA or not SOURCES[name].files:
        return {}
    found = families.locate(name, data_dir)
    return {name if path.is_dir() else f"{name}/{file}": path.resolve() for file, path in found.items()}


def localised(job: Job, folder: Path | None, designs: Path | None, data: Path | None) -> Job:
    """The job with the paths of this machine: of a folder for checkpoints, and of unpacked parcels."""
    if folder is not None:
        job = replace(job, folder=str(folder))
    if designs is not None:
        job = replace(job, designs_from=str(designs / DESIGNS_FILE))
    return job if data is None else with_data(job, next(data.iterdir()))


def with_data(job: Job, path: Path) -> Job:
    """The job with its data at `path`: the user's file or folder, or a file or the folder of a data set."""
    if is_path(job.runs[0]["data"]):  # where it lies is not part of a run's identity
        return replace(job, runs=tuple({**run, "data": str(path)} for run in job.runs))
    return replace(job, data_dir=str(path if path.is_dir() else path.parent))


def read_checkpoints(job: Job) -> tuple[Job, dict[str, bytes], list[str]]:
    """The furthest intact checkpoint of each run: the job with only these, their contents, a line for a damaged one."""
    kept, contents, notes = [], dict[str, bytes](), list[str]()
    for records in job.checkpoints:
        left = list(records)
        while left:
            try:
                contents[left[0].file] = read_checkpoint(Path(job.folder), left[0])
                break
            except TiebreakError as error:
                del left[0]
                notes.append(f"{error}; {'using the one before it' if left else 'starting over'}")
        kept.append(tuple(left[:1]))
    return replace(job, checkpoints=tuple(kept)), contents, notes


def write_checkpoint(folder: Path, record: CheckpointRecord, content: bytes) -> None:
    """Write a checkpoint that came with a message, before its record is stored. Another sha256 is refused."""
    if hashlib.sha256(content).hexdigest() != record.sha256:
        raise StopStudyError(f"{record.file}: arrived damaged, its sha256 is not the one of its record")
    if not folder.exists():
        raise StopStudyError(f"{folder}: removed while the study was running; run the same command to train it again")
    files.write(files.inside(checkpoint_folder(folder), record.file), content)

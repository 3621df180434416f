"""The digests of a results folder's files, kept in its store: what changed since it was written is never believed.

A digest is stored as `pending` before the file is written and becomes the file's digest with it, so that a kill in
between leaves either the file before or the new one, and both are known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.connection import DamagedStoreError
from tiebreak.results.record import FileRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.design_file import DESIGNS_FILE

STUDY_FILE = "study.toml"
FILES = (STUDY_FILE, PLAN_FILE, DESIGNS_FILE, "verdict.json", "report.html", "report.md")  # that may have a digest


def is_module_name(name: str) -> bool:
    """Whether a stored name is that of a Python module below the folder, such as `blocks/conv.py`: a user's helper.

    Nothing else but `FILES` is ever compared, moved or replaced by a name that a store gave.
    """
    return name.endswith(".py") and all(part.isidentifier() for part in name.removesuffix(".py").split("/"))


def module_names(store: Store) -> list[str]:
    """The user's modules in the folder: the designs, and the helpers beside them."""
    return [name for name in store.files() if is_module_name(name)]


def write_files(folder: Path, contents: Mapping[str, str]) -> None:
    """Write files of the folder and store their digests; a file that is as it should be is not written again."""
    digests = {name: hashlib.sha256(content.encode()).hexdigest() for name, content in contents.items()}
    with closing(Store.create(folder)) as store:
        known = store.files()
        new = [
            name
            for name, digest in digests.items()
            if known.get(name) != FileRecord(name=name, sha256=digest) or _digest(folder, name) != digest
        ]
        if not new:
            return
        with store.transaction():
            for name in new:
                store.set_file(replace(known.get(name, FileRecord(name=name)), pending=digests[name]))
        with store.transaction():  # another writer (`tiebreak report`) waits here
            for name in new:
                files.write(folder / name, contents[name])
                pending = store.files()[name].pending
                kept = "" if pending == digests[name] else pending
                store.set_file(FileRecord(name=name, sha256=digests[name], pending=kept))


def file_problems(store: Store, folder: Path, names: Collection[str] | None = None) -> dict[str, str]:
    """What is wrong with the files (all, or those named), by name: one line each. Files without a digest are right."""
    found = {}
    for name, record in store.files().items():
        if not (name in FILES or is_module_name(name)) or (names is not None and name not in names):
            continue
        if _differs(folder, record) and _differs(folder, store.files()[name]):  # twice: it may be written just now
            found[name] = _problem(folder / name)
    return found


def require(store: Store, folder: Path, names: Collection[str]) -> None:
    """Refuse files that are not as they were written."""
    problems = file_problems(store, folder, names)
    if problems:
        raise TiebreakError("; ".join(problems.values()))


def require_folder_file(path: Path) -> None:
    """Refuse a file of a results folder that is not as it was written; with the designs, also the modules beside them.

    Any other file is right.
    """
    folder = path.parent
    if (folder / STORE_FILE).is_file():
        with closing(Store.open(folder)) as store:
            require(store, folder, (path.name, *(module_names(store) if path.name == DESIGNS_FILE else ())))


def is_recorded(folder: Path, *names: str) -> bool:
    """Whether the folder's files have digests, in a store that can be read, and match them."""
    if not (folder / STORE_FILE).is_file():
        return False
    try:
        with closing(Store.open(folder)) as store:
            return set(names) <= set(store.files()) and not file_problems(store, folder, names)
    except DamagedStoreError:
        return False


def _differs(folder: Path, record: FileRecord) -> bool:
    digest = _digest(folder, record.name)
    return digest != record.sha256 and (not record.pending or digest != record.pending)


def _digest(folder: Path, name: str) -> str:
    """The sha256 of a file, empty where there is none; of a link, a folder or a pipe, what no file has."""
    try:
        path = files.inside(folder, *name.split("/"))
    except TiebreakError:
        return "not a file"
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise files.failure(path, "cannot be read", error) from None


def _problem(path: Path) -> str:
    what = "damaged or edited: its sha256 is not the recorded one" if path.exists() else "missing"
    advice = "`tiebreak run` with your study writes it again"
    if path.name == STUDY_FILE:
        advice += " (this copy is not for editing: to change the study, edit your own file and run that)"
    return f"{path}: {what}; {advice}"

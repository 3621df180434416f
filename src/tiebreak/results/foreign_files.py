"""Files of somebody else in the folder that a study is to be written to: they are never replaced."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.results.manifest import FILES
from tiebreak.results.seal import is_sealed
from tiebreak.results.store import STORE_FILE
from tiebreak.results.stored_study import stored_plan
from tiebreak.study.design_file import DESIGNS_FILE
from tiebreak.text import listed


def refuse_foreign_files(folder: Path, modules: Collection[str]) -> None:
    """Refuse a folder that is no results folder and holds files of the names that the study would write.

    `modules` are those of the user's designs. A results folder that lost its store still has its seal or its plan.
    """
    store = folder / STORE_FILE
    if not folder.is_dir() or store.exists() or is_sealed(store) or stored_plan(folder) is not None:
        return
    names = dict.fromkeys([*(name for name in FILES if name != DESIGNS_FILE), *modules])
    found = [name for name in names if (folder / name).exists()]
    if found:
        raise TiebreakError(
            f"{folder}: not a results folder, and its {listed(found)} would be replaced; give another --out"
        )

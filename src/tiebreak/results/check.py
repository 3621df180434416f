"""`tiebreak check`: verifies the hashes of a results folder."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.store import Store

CHECKPOINTS = "checkpoints"


def check(folder: Path) -> tuple[int, list[str]]:
    """How many hashes were compared, and a line for each problem."""
    problems: list[str] = []
    compared = 0
    try:
        compared += len(Plan.read(folder).runs)  # reading computes every identity anew
    except TiebreakError as error:
        problems.append(str(error))
    with closing(Store.open(folder)) as store:
        problems += store.damage()
        compared += store.rows()
        for record in store.checkpoints():
            compared += 1
            path = folder / CHECKPOINTS / record.file
            if not path.is_file():
                problems.append(f"{path}: missing")
            elif hashlib.sha256(path.read_bytes()).hexdigest() != record.sha256:
                problems.append(f"{path}: damaged, its sha256 is not the recorded one")
    return compared, problems

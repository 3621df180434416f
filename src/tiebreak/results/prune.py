"""`tiebreak prune`: remove from a results folder what its answer does not need, and record that it was removed.

A checkpoint that was pruned keeps its row in the store, without a file name: `check` does not miss it, and `run` does
not train its run again. All records stay, so verdict and report stay as they are.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan, Run, evaluation_key
from tiebreak.results.checkpoint_file import checkpoint_folder, checkpoint_path
from tiebreak.results.heal import DAMAGED
from tiebreak.results.record import CheckpointRecord, Records
from tiebreak.results.seal import seal
from tiebreak.results.store import STORE_FILE, Store


@dataclass(frozen=True, kw_only=True)
class Prunable:
    """What can go: checkpoints of finished runs, files that no record names, and damaged files that were set aside."""

    checkpoints: tuple[CheckpointRecord, ...]
    checkpoint_bytes: int
    stray: tuple[Path, ...]
    stray_bytes: int
    damaged: Path | None
    damaged_bytes: int
    kept: int  # checkpoints that stay
    kept_bytes: int

    @property
    def total(self) -> int:
        """Bytes that would be free."""
        return self.checkpoint_bytes + self.stray_bytes + self.damaged_bytes


def find_prunable(folder: Path, plan: Plan, records: Records, needed: Collection[str]) -> Prunable:
    """What can go from a folder. `needed`: identities of finished runs whose last checkpoint stays.

    The checkpoints of a run that has not ended, has failed or lacks an evaluation always stay: `tiebreak run` continues
    from them.
    """
    with closing(Store.open(folder)) as store:
        files = [record for record in store.checkpoints() if not record.pruned]
    open_trajectories = {run.trajectory for run in plan.runs.values() if not _has_result(run, records)}
    last = {(plan.runs[identity].trajectory, plan.runs[identity].epochs) for identity in needed}
    stay = [
        record
        for record in files
        if record.trajectory in open_trajectories or (record.trajectory, record.epoch) in last
    ]
    go = [record for record in files if record not in stay]
    known = {record.file for record in files}
    place = checkpoint_folder(folder)
    stray = [path for path in place.glob("*") if path.name not in known and path.is_file()] if place.is_dir() else []
    damaged = folder / DAMAGED
    if damaged.is_symlink():
        raise TiebreakError(f"{damaged}: a symbolic link, which is not followed; remove it")
    return Prunable(
        checkpoints=tuple(go),
        checkpoint_bytes=sum(_size(checkpoint_path(folder, record)) for record in go),
        stray=tuple(sorted(stray)),
        stray_bytes=sum(map(_size, stray)),
        damaged=damaged if damaged.is_dir() else None,
        damaged_bytes=sum(_size(path) for path in damaged.rglob("*")) if damaged.is_dir() else 0,
        kept=len(stay),
        kept_bytes=sum(_size(checkpoint_path(folder, record)) for record in stay),
    )


def prune(folder: Path, found: Prunable) -> None:
    """Remove it. The folder must be locked. After a kill in between, the next `run` or `prune` removes the rest."""
    with closing(Store.create(folder)) as store, store.transaction():
        for record in found.checkpoints:
            store.add_checkpoint(replace(record, file="", sha256=""))
    for record in found.checkpoints:
        checkpoint_path(folder, record).unlink(missing_ok=True)
    for path in found.stray:
        path.unlink(missing_ok=True)
    if found.damaged is not None:
        shutil.rmtree(found.damaged)
    seal(folder / STORE_FILE)


def _has_result(run: Run, records: Records) -> bool:
    ended, finals = records.runs.get(run.identity), records.finals.get(run.identity, {})
    if ended is None or ended.status == "failed":
        return False
    return ended.status == "diverged" or all(evaluation_key(item) in finals for item in run.evaluations)


def _size(path: Path) -> int:
    """The bytes of a file, 0 where there is none."""
    return path.lstat().st_size if path.is_file() else 0

"""Epochs that are missing in the records: a run that ended has all its epochs, or it is not used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from tiebreak.results.record import Records, RunRecord, TrainingState

Recorded = TypeVar("Recorded", Records, TrainingState)


def epochs_before_gap(epochs: Collection[int]) -> int:
    """The last epoch of those that are there from the first on without a gap.

    >>> epochs_before_gap([1, 2, 4]), epochs_before_gap([2]), epochs_before_gap([])
    (2, 0, 0)
    """
    last = 0
    while last + 1 in epochs:
        last += 1
    return last


def lacks_epochs(run: RunRecord, epochs: Collection[int]) -> bool:
    """Whether an epoch of the run is missing. The epoch in which a run diverged is not stored."""
    needed = {"done": run.epoch, "diverged": run.epoch - 1}.get(run.status, 0)
    return epochs_before_gap(epochs) < needed


def without_gaps(records: Recorded) -> Recorded:
    """The records without the runs that lack an epoch; `damaged` names them."""
    lacking = [run for run in records.runs.values() if lacks_epochs(run, records.epochs.get(run.trajectory, {}))]
    if not lacking:
        return records
    dropped = {run.identity for run in lacking}
    lines: list[str] = [
        f"run {run.identity}: epoch {epochs_before_gap(records.epochs.get(run.trajectory, {})) + 1} is missing"
        for run in lacking
    ]
    kept = {identity: run for identity, run in records.runs.items() if identity not in dropped}
    return replace(records, runs=kept, damaged=(*records.damaged, *lines))

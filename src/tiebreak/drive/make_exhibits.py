"""Exhibits of a finished run: its network is taken from the last checkpoint and shown to the task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tiebreak.drive.messages import Job, Message, Note, Shown
from tiebreak.errors import TiebreakError
from tiebreak.results.record import ExhibitRecord
from tiebreak.train import checkpoint
from tiebreak.train.cohort import begin


def show(job: Job) -> Iterator[Message]:
    """The job's exhibits. Without a whole checkpoint there is nothing to show, and a note says so."""
    work = begin(job)
    (run,), (state,) = work.runs, work.states
    record = next((each for each in job.checkpoints[0] if each.epoch == run.epochs), None)
    if record is None:
        yield Note(text=f"{run.label}: no checkpoint of epoch {run.epochs}, so no exhibits of it")
        return
    try:
        checkpoint.restore(Path(job.folder), record, state)
    except TiebreakError as error:
        yield Note(text=f"{error}; no exhibits of {run.label}")
        return
    shown = work.task.exhibits(work.network.eval(), work.data, run.options, job.examples)
    exhibits = [ExhibitRecord(identity=run.identity, name=name, arrays=arrays) for name, arrays in shown.items()]
    yield Shown(identity=run.identity, exhibits=tuple(exhibits))

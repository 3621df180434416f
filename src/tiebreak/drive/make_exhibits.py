"""Exhibits of a finished run, made by its task from the network in its last checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tiebreak.drive.messages import ExhibitsMade, Job, Message, Note
from tiebreak.errors import TiebreakError
from tiebreak.results.record import SHOWN_EXAMPLES, ExhibitRecord
from tiebreak.train import checkpoint
from tiebreak.train.monitor import epochs_left, load_evaluated
from tiebreak.train.run_group import make_group


def make_exhibits(job: Job) -> Iterator[Message]:
    """The exhibits of the job's run; without an intact checkpoint of its last epoch, a note instead."""
    group = make_group(job)
    (run,), (state,) = group.runs, group.states
    record = next(iter(job.checkpoints[0]), None)  # the furthest one
    try:
        if record is not None:
            checkpoint.restore(Path(job.folder), record, state)
    except TiebreakError as error:
        yield Note(text=f"{error}; no exhibits of {run.label}")
        return
    if epochs_left(run, state):
        yield Note(text=f"{run.label}: no checkpoint of epoch {run.epochs}, so no exhibits of it")
        return
    load_evaluated(state)
    if run.precision == "float64":
        group.network.float()  # exhibits are made of float32 inputs
    made = group.task.exhibits(group.network.eval(), group.data, run.options, job.examples)
    if job.examples:  # a task may have nothing to show of them: that they were asked for is remembered
        made = {**made, SHOWN_EXAMPLES: {"index": np.asarray(job.examples)}}
    exhibits = [ExhibitRecord(identity=run.identity, name=name, arrays=arrays) for name, arrays in made.items()]
    yield ExhibitsMade(identity=run.identity, exhibits=tuple(exhibits))

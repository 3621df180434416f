"""A worker process: jobs come in on standard input, messages go out on standard output, one JSON line each.

`python -m tiebreak.drive.worker`. A process of its own rather than a fork: it needs nothing of the driver's memory, a
script that calls `tiebreak.run` needs no `if __name__ == "__main__"`, and when the driver dies its pipe closes.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TextIO

import torch

from tiebreak.drive.make_exhibits import show
from tiebreak.drive.messages import Job, Message, Note, RunEnded, Stop, decode_job, encode
from tiebreak.drive.strategy import measure
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.record import RunRecord
from tiebreak.train.cohort import train

WORK: dict[str, Callable[[Job, Callable[[Message], None]], Iterator[Message]]] = {
    "train": train,
    "measure": lambda job, send: measure(job),
    "show": lambda job, send: show(job),
}


def work(job: Job, out: TextIO) -> None:
    """Do one job. A design that raises is a failed run, told with the reason; what would stop every run is a Stop."""

    def send(message: Message) -> None:
        out.write(encode(message) + "\n")
        out.flush()

    try:
        for message in WORK[job.work](job, send):
            send(message)
    except BrokenPipeError:
        raise
    except (TiebreakError, OSError) as error:
        send(Stop(text=str(error)))
    except Exception as error:
        for message in _failure(job, error):
            send(message)


def _failure(job: Job, error: Exception) -> Iterator[Message]:
    """What a design's exception means: the runs failed, or a finished run cannot be shown."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__}: {' '.join(str(error).split())} ({where.filename}:{where.lineno})"
    for content in job.runs:
        run = Run.model_validate(content)
        if job.work == "show":
            yield Note(text=f"{run.label}: no exhibits: {reason}")
        else:
            record = RunRecord(
                identity=run.identity, trajectory=run.trajectory, status="failed", epoch=0, reason=reason
            )
            yield RunEnded(record=record)


def main() -> None:
    """Work until standard input ends."""
    torch.set_num_threads(1)  # runs are parallel, one process per core; the count is part of bit-equal resuming
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a design prints must not reach the message stream
    try:
        for line in sys.stdin:
            work(decode_job(line), out)
            out.write("\n")  # an empty line: ready for the next job
            out.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the driver is gone; what it acknowledged is kept


if __name__ == "__main__":
    main()

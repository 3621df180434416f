"""A worker process: jobs come in on standard input, messages go out on standard output, one JSON line each.

`python -m tiebreak.drive.worker DEVICE`, the device that its jobs will name. It is a new process, not a fork: it needs
nothing of the driver's memory, a script that calls `tiebreak.run` needs no `if __name__ == "__main__"`, and its pipe
closes when the driver dies.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import torch

from tiebreak.drive.assignment import NOT_NEEDED
from tiebreak.drive.failures import failed
from tiebreak.drive.kept_engine import free_unless_of, take
from tiebreak.drive.make_exhibits import make_exhibits
from tiebreak.drive.messages import Abort, EpochDone, Job, Message, Note, RunEnded, decode_job, encode
from tiebreak.drive.step_turns import time_in_turns
from tiebreak.drive.strategy import measure
from tiebreak.errors import StopStudyError, TiebreakError, describe_error
from tiebreak.models.users_lines import line_here
from tiebreak.plan.runs import Run
from tiebreak.results.record import CheckpointRecord, Strategy
from tiebreak.train import checkpoint
from tiebreak.train.fused.engine import Fused
from tiebreak.train.fused.warm_up import warm_up
from tiebreak.train.loop import Loop
from tiebreak.train.monitor import epochs_left
from tiebreak.train.run_group import RunGroup, make_group, out_of_memory
from tiebreak.train.step import State
from tiebreak.train.trainer import Engine, Trainer
from tiebreak.warned import told_warnings

Send = Callable[[Message], None]
DESIGN_ERRORS = (Exception, SystemExit)  # what a design may raise; KeyboardInterrupt comes from the terminal


class DriverGoneError(BrokenPipeError):
    """The driver does not read any more. A class of its own, since a design may raise a BrokenPipeError too."""


def do_job(job: Job, out: TextIO) -> None:
    """Do one job and write its messages as lines."""

    def send(message: Message) -> None:
        try:
            out.write(encode(message) + "\n")
            out.flush()
        except BrokenPipeError as error:
            raise DriverGoneError from error

    perform(job, send)


def perform(job: Job, send: Send) -> None:
    """Do one job. An error of a design fails runs; one that every run would meet stops all."""
    try:
        free_unless_of(job)
        with told_warnings(lambda text: send(Note(text=f"{text}{line_here()}", once=text))):
            for message in train(job, send) if job.work == "train" else _probe(job):
                send(message)
    except DriverGoneError:
        raise
    except (TiebreakError, OSError) as error:
        send(Abort(text=str(error)))


def _probe(job: Job) -> Iterator[Message]:
    """Measure strategies, time steps or make exhibits. A design that raises in the first fails all runs of the job."""
    runs = [Run.model_validate(content) for content in job.runs]
    try:
        work = {"measure": measure, "time": time_in_turns, "exhibits": make_exhibits}[job.work]
        yield from work(job)
    except StopStudyError:
        raise
    except DESIGN_ERRORS as error:
        reason = describe_error(error, job.designs_from)
        if job.work == "measure":
            saved = job.checkpoints or ((),) * len(runs)
            for run, records in zip(runs, saved, strict=True):
                yield failed(run, records[0].epoch if records else 0, reason)
        else:
            yield Note(text=f"{runs[0].label}: {NOT_NEEDED[job.work]}: {reason}")
        _check_device(job)


def train(job: Job, send: Send) -> Iterator[Message]:
    """Train the job's runs to their end. Progress goes to `send` at once; records are yielded as they are made.

    A group of runs that does not fit into memory is halved and continues from its last checkpoints. When a design
    raises, those runs of the group fail that have not ended; other groups are not affected.
    """
    runs = [Run.model_validate(content) for content in job.runs]
    states = job.checkpoints or ((),) * len(runs)
    saved = {run.identity: list(each) for run, each in zip(runs, states, strict=True)}
    reached = {identity: each[0].epoch if each else 0 for identity, each in saved.items()}
    ended: set[str] = set()
    waiting = [runs] if job.strategy == "fused" else [[run] for run in reversed(runs)]
    while waiting:
        group = [run for run in waiting.pop() if run.identity not in ended]
        if not group:
            continue
        try:
            for message in _train_group(job, group, saved, reached, waiting, send):
                if isinstance(message, EpochDone):
                    for record in message.checkpoints:
                        saved[record.identity].insert(0, record)
                    _note_epochs(group, message, reached)
                elif isinstance(message, RunEnded):
                    ended.add(message.record.identity)
                yield message
        except (StopStudyError, DriverGoneError):
            raise
        except DESIGN_ERRORS as error:
            if out_of_memory(error) and len(group) > 1:
                half = len(group) // 2
                yield Note(text=f"out of memory with {len(group)} runs at once; continuing with {half} at a time")
                waiting += [group[half:], group[:half]]
            else:
                reason = describe_error(error, job.designs_from)
                yield from [failed(run, reached[run.identity], reason) for run in group if run.identity not in ended]
        _check_device(job)


def _check_device(job: Job) -> None:
    """Free unused memory of the GPU. After a device-side assertion this raises: no later call of this process can
    succeed, so that it ends, and another worker continues.
    """
    if job.device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def _note_epochs(group: list[Run], message: EpochDone, reached: dict[str, int]) -> None:
    """The epochs that a message says are done, by run: those that diverged or stopped early have no record in it."""
    done = {record.trajectory: record.epoch for record in message.records}
    reached.update({run.identity: done[run.trajectory] for run in group if run.trajectory in done})


def _train_group(
    job: Job,
    runs: list[Run],
    saved: dict[str, list[CheckpointRecord]],
    reached: dict[str, int],
    waiting: list[list[Run]],
    send: Send,
) -> Iterator[Message]:
    """Train runs together. If they are not equally far from their ends, they go back to `waiting`, in equal parts."""
    group = make_group(job, runs)
    for run, state in zip(runs, group.states, strict=True):
        yield from _resume(job, saved[run.identity], state)
        reached[run.identity] = state.epoch
    left = [epochs_left(run, state) for run, state in zip(runs, group.states, strict=True)]
    if len(set(left)) > 1:  # after a damaged checkpoint, or with arms of different length
        waiting += [[run for run, own in zip(runs, left, strict=True) if own == each] for each in sorted(set(left))]
        return
    engine, group = take(job, group) or (make_engine(group, job.strategy, job.compiled), group)
    yield from Trainer(job, group, engine, send).train(left[0])


def make_engine(group: RunGroup, strategy: Strategy, compiled: bool | None = None) -> Engine:
    """The engine that trains the group with a strategy."""
    if strategy == "loop":
        return Loop(group.task, group.network, group.runs[0], group.states[0], group.precision)
    return Fused(
        group.task,
        group.network,
        group.runs,
        group.states,
        compiled=False if strategy == "captured" else compiled,
        precision=group.precision,
        alone=strategy == "captured",
    )


def _resume(job: Job, records: list[CheckpointRecord], state: State) -> Iterator[Message]:
    """Load the furthest intact checkpoint into the state. A damaged one is reported once and not tried again."""
    while records:
        try:
            checkpoint.restore(Path(job.folder), records[0], state)
        except TiebreakError as error:
            del records[0]
            yield Note(text=f"{error}; {'using the one before it' if records else 'starting over'}")
        else:
            return


def main() -> None:
    """Do jobs until standard input ends."""
    torch.set_num_threads(1)  # runs are parallel, one process per core; bit-equal resuming needs the same count
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a design prints must not reach the message stream
    try:
        warm_up(*sys.argv[1:2] or ["cpu"])
        for line in sys.stdin:
            do_job(decode_job(line), out)
            out.write("\n")  # an empty line: ready for the next job
            out.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the driver is gone; everything that it acknowledged is stored


if __name__ == "__main__":
    main()

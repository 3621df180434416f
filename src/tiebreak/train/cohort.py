"""The unit of work: the runs of a job, from their initial state to their records. Depends on nothing of the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from tiebreak import catalog
from tiebreak.drive.messages import EpochDone, Job, Message, Note, RunEnded
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.record import CheckpointRecord, Strategy
from tiebreak.streams import stream
from tiebreak.study import registry
from tiebreak.study.registry import Scalar
from tiebreak.train import checkpoint
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state
from tiebreak.train.trainer import Engine, Trainer, Work


@lru_cache(maxsize=1)
def _load(task: str, reading: tuple[tuple[str, Scalar], ...], name: str, data_dir: str | None) -> Any:
    return catalog.TASKS[task].with_options(dict(reading)).load(name, Path(data_dir) if data_dir else None)


def begin(job: Job, runs: list[Run] | None = None) -> Work:
    """The runs of a job (or some of them) in their initial state."""
    runs = runs or [Run.model_validate(content) for content in job.runs]
    first = runs[0]
    task = catalog.TASKS[first.task].with_options(first.options)
    known = registry.TASKS[first.task].options
    reading = tuple((name, value) for name, value in first.options.items() if known[name].of_data)
    data = _load(first.task, reading, first.data, job.data_dir)
    if data.checksum != first.checksum:
        raise TiebreakError(
            f"data set {first.data} changed since the plan was made; start again in another --out folder"
        )
    design = catalog.find_design(first.design, job.designs_from, registry.TASKS[first.task].family)
    device = torch.device(job.device)
    if device.type == "cuda":  # the same whatever the strategy; recorded with every run
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = job.precision == "tf32"
    states = []
    for run in reversed(runs):  # the first run's network is the one that stays
        network = design.network(task.shape(data), run.build, stream(run.seed, "init")).to(device)
        states.append(initial_state(network, run))
    return Work(runs, task, data, network, states[::-1], device)


def train(job: Job, send: Callable[[Message], None]) -> Iterator[Message]:
    """Train the job's runs to their end. Progress goes to `send` at once; records are yielded as they are made.

    Runs that do not fit into memory together are halved and go on from their last states.
    """
    runs = [Run.model_validate(content) for content in job.runs]
    states = job.checkpoints or ((),) * len(runs)
    saved = {run.identity: list(each) for run, each in zip(runs, states, strict=True)}
    ended: set[str] = set()
    waiting = [runs] if job.strategy == "fused" else [[run] for run in reversed(runs)]
    while waiting:
        together = [run for run in waiting.pop() if run.identity not in ended]
        if not together:
            continue
        try:
            for message in _train_together(job, together, saved, waiting, send):
                if isinstance(message, EpochDone):
                    for record in message.checkpoints:
                        saved[record.identity].insert(0, record)
                elif isinstance(message, RunEnded):
                    ended.add(message.record.identity)
                yield message
        except RuntimeError as error:
            if not out_of_memory(error) or len(together) == 1:
                raise
            half = len(together) // 2
            yield Note(text=f"out of memory with {len(together)} runs at once; going on with {half} at a time")
            waiting += [together[half:], together[:half]]
        if job.device == "cuda":
            torch.cuda.empty_cache()


def out_of_memory(error: RuntimeError) -> bool:
    """Whether memory ran out, on a GPU or on the CPU."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _train_together(
    job: Job,
    runs: list[Run],
    saved: dict[str, list[CheckpointRecord]],
    waiting: list[list[Run]],
    send: Callable[[Message], None],
) -> Iterator[Message]:
    """Train runs as one. Those whose last state is of another epoch than the first run's are left to `waiting`."""
    work = begin(job, runs)
    for run, state in zip(runs, work.states, strict=True):
        yield from _resume(job, saved[run.identity], state)
    left = [run.epochs - state.epoch for run, state in zip(runs, work.states, strict=True)]
    if len(set(left)) > 1:  # after a damaged checkpoint, or with arms of different length
        waiting += [[run for run, own in zip(runs, left, strict=True) if own == each] for each in sorted(set(left))]
        return
    yield from Trainer(job, work, make_engine(work, job.strategy), send).train(left[0])


def make_engine(work: Work, strategy: Strategy) -> Engine:
    """The runs with their strategy."""
    if strategy == "loop":
        return Loop(work.task, work.network, work.runs[0], work.states[0])
    return Fused(work.task, work.network, work.runs, work.states)


def _resume(job: Job, records: list[CheckpointRecord], state: State) -> Iterator[Message]:
    """Fill the state from the furthest checkpoint that is whole; a damaged one is named, once, and given up."""
    while records:
        try:
            checkpoint.restore(Path(job.folder), records[0], state)
        except TiebreakError as error:
            del records[0]
            yield Note(text=f"{error}; {'using the one before it' if records else 'starting over'}")
        else:
            return

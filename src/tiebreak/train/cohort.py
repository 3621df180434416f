"""The unit of work: one run from its job to its records. Depends on nothing of the driver but the job."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tiebreak import catalog
from tiebreak.errors import TiebreakError
from tiebreak.names import Scalar
from tiebreak.results.record import EpochRecord, FinalRecord, RunRecord, Status
from tiebreak.runs import Run, evaluation_key
from tiebreak.streams import stream
from tiebreak.tasks.interface import Split, Task
from tiebreak.train import checkpoint
from tiebreak.train.evaluate import evaluate
from tiebreak.train.loop import train_epoch
from tiebreak.train.messages import EpochDone, Job, Message, Note, Progress, RunEnded
from tiebreak.train.step import State, initial_state


@dataclass(frozen=True)
class Work:
    """A run with everything it is trained with."""

    run: Run
    task: Task
    data: Any
    network: nn.Module
    state: State
    device: torch.device

    def split(self, name: str, evaluation: dict[str, Scalar]) -> Split:
        """One split of the data on the run's device."""
        tensors = self.task.split(self.data, name, self.run.options, evaluation)
        return {key: values.to(self.device) for key, values in tensors.items()}


@lru_cache(maxsize=1)
def _load(task: str, name: str, data_dir: str | None) -> Any:
    return catalog.TASKS[task].load(name, Path(data_dir) if data_dir else None)


def begin(job: Job) -> Work:
    """The run of a job in its initial state."""
    run = Run.model_validate(job.run)
    task = catalog.TASKS[run.task]
    data = _load(run.task, run.data, job.data_dir)
    if data.checksum != run.checksum:
        raise TiebreakError(f"data set {run.data} changed since the plan was made; start again in another --out folder")
    design = catalog.find_design(run.design, job.designs_from)
    network = design.network(task.shape(data), run.build, stream(run.seed, "init"))
    device = torch.device(job.device)
    network.to(device)
    return Work(run, task, data, network, initial_state(network, run), device)


def train(job: Job, send: Callable[[Message], None]) -> Iterator[Message]:
    """Train the job's run to its end. Progress goes to `send` at once; records are yielded as they are made."""
    work = begin(job)
    run, state = work.run, work.state
    yield from _resume(job, state)
    train_split, val_split = work.split("train", {}), work.split("val", {})
    while state.epoch < run.epochs:
        began, start = state.epoch, time.perf_counter()

        def tick(share: float, began: int = began) -> None:
            send(Progress(identity=run.identity, epochs=began + share))

        loss = train_epoch(work.task, work.network, run, state, train_split, tick)
        trained = time.perf_counter()
        metrics, _ = evaluate(work.task, work.network, val_split)
        evaluated = time.perf_counter()
        values = {"train_loss": loss, **{f"val_{name}": value for name, value in metrics.items()}}
        wrong = _not_finite(values, state)
        if wrong is not None:
            yield RunEnded(record=_ended(work, "diverged", f"epoch {state.epoch}: {wrong}"))
            return
        saved = checkpoint.save(Path(job.folder), run, state)
        seconds = {
            "train": trained - start,
            "evaluate": evaluated - trained,
            "checkpoint": time.perf_counter() - evaluated,
        }
        record = EpochRecord(trajectory=run.trajectory, epoch=state.epoch, metrics=values, seconds=seconds)
        yield EpochDone(record=record, checkpoint=saved)
    finals = tuple(_final(work, evaluation) for evaluation in run.evaluations)
    yield RunEnded(record=_ended(work, "done", ""), finals=finals)


def _resume(job: Job, state: State) -> Iterator[Message]:
    """Fill the state from the furthest checkpoint that is whole; a damaged one is named and the previous one used."""
    for left, record in enumerate(job.checkpoints, start=1 - len(job.checkpoints)):
        try:
            checkpoint.restore(Path(job.folder), record, state)
        except TiebreakError as error:
            yield Note(text=f"{error}; {'using the one before it' if left else 'starting over'}")
        else:
            return


def _not_finite(values: Mapping[str, float], state: State) -> str | None:
    """What stopped being a number, if anything did: that ends a run."""
    for name, value in values.items():
        if not math.isfinite(value):
            return f"{name.replace('_', ' ')} {value:g}"
    finite = all(bool(torch.isfinite(value).all()) for value in state.params.values())
    return None if finite else "parameters not finite"


def _final(work: Work, evaluation: dict[str, Scalar]) -> FinalRecord:
    start = time.perf_counter()
    metrics, outcomes = evaluate(work.task, work.network, work.split("test", evaluation))
    return FinalRecord(
        identity=work.run.identity,
        evaluation=evaluation_key(evaluation),
        metrics=metrics,
        outcomes=outcomes,
        seconds=time.perf_counter() - start,
    )


def _ended(work: Work, status: Status, reason: str) -> RunRecord:
    return RunRecord(
        identity=work.run.identity,
        trajectory=work.run.trajectory,
        status=status,
        epoch=work.state.epoch,
        reason=reason,
        provenance={
            "device": str(work.device),
            "strategy": "loop",
            "threads": str(torch.get_num_threads()),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
    )

"""The driver: find out what is missing, have it trained, keep every record the moment it exists.

It is the only writer of the store and imports no torch: training happens in worker processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.results.record import CheckpointRecord
from tiebreak.results.store import Store
from tiebreak.runs import Plan, Run
from tiebreak.train.messages import EpochDone, Job, Message, Note, Progress, RunEnded, Stop
from tiebreak.train.pool import run_jobs

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where training happens."""

    device: str = "cpu"
    workers: int | None = None  # None: one per core on the CPU, one on a GPU
    data_dir: Path | None = None

    def processes(self) -> int:
        """How many worker processes to start."""
        if self.workers is not None:
            return self.workers
        return len(os.sched_getaffinity(0)) if self.device == "cpu" else 1


def missing(plan: Plan, store: Store) -> list[Run]:
    """The runs without a result. A run that failed is tried again; one that diverged is a result."""
    records = store.records()
    wanted = []
    for identity, run in plan.runs.items():
        record = records.runs.get(identity)
        if record is None or record.status == "failed" or (record.status == "done" and _unevaluated(run, records.finals.get(identity, {}))):
            wanted.append(run)
    return wanted


def _unevaluated(run: Run, finals: Iterable[str]) -> bool:
    from tiebreak.runs import evaluation_key

    return any(evaluation_key(evaluation) not in finals for evaluation in run.evaluations)


def train_plan(plan: Plan, folder: Path, machine: Machine, listen: Callable[[Message], None]) -> int:
    """Train what is missing and keep it. Returns how many runs were trained; `listen` hears every message."""
    store = Store.create(folder)
    with closing(store):
        runs = missing(plan, store)
        kept = store.checkpoints()
        data_dir = str(machine.data_dir) if machine.data_dir else None
        jobs = [
            Job(
                run=run.model_dump(mode="json"),
                folder=str(folder),
                data_dir=data_dir,
                device=machine.device,
                checkpoints=resumable(run, kept),
            )
            for run in runs
        ]
        with closing(run_jobs(jobs, machine.processes())) as messages:  # type: ignore[type-var]
            for message in messages:
                keep(store, folder, message)
                listen(message)
    return len(runs)


def resumable(run: Run, kept: list[CheckpointRecord]) -> tuple[CheckpointRecord, ...]:
    """The states that the run may continue from, furthest first: its own, or a shorter run's on the same path."""
    usable = [record for record in kept if record.trajectory == run.trajectory and record.epoch <= run.epochs]
    return tuple(sorted(usable, key=lambda record: -record.epoch))


def keep(store: Store, folder: Path, message: Message) -> None:
    """Store what a message carries, one transaction each; then drop the states that it made superfluous."""
    if isinstance(message, Stop):
        raise TiebreakError(message.text)
    superfluous: list[CheckpointRecord] = []
    with store.transaction():
        if isinstance(message, EpochDone):
            store.add_epoch(message.record)
            store.add_checkpoint(message.checkpoint)
            superfluous = _older(store, message.checkpoint.identity, message.checkpoint.epoch - 1)
        elif isinstance(message, RunEnded):
            store.add_run(message.record)
            for final in message.finals:
                store.add_final(final)
            superfluous = _older(store, message.record.identity, message.record.epoch)
        for record in superfluous:
            store.drop_checkpoint(record)
    for record in superfluous:
        (folder / CHECKPOINTS / record.file).unlink(missing_ok=True)


def _older(store: Store, identity: str, epoch: int) -> list[CheckpointRecord]:
    """A run keeps its last two states while it trains, the second in case the first is damaged, and one at its end."""
    return [record for record in store.checkpoints() if record.identity == identity and record.epoch < epoch]

"""The driver: find out what is missing, have it trained, keep every record the moment it exists.

It is the only writer of the store and imports no torch: training happens in worker processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.results.check import CHECKPOINTS
from tiebreak.results.record import CheckpointRecord
from tiebreak.results.store import Store
from tiebreak.results.tally import Tally
from tiebreak.results.telling import to_show
from tiebreak.runs import Plan, Run, evaluation_key
from tiebreak.study import Study
from tiebreak.train.messages import Begun, EpochDone, Job, Message, Note, RunEnded, Shown, Stop
from tiebreak.train.pool import run_jobs

Listener = Callable[[Message], None]


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

    def has_result(run: Run) -> bool:
        record, finals = records.runs.get(run.identity), records.finals.get(run.identity, {})
        if record is None or record.status == "failed":
            return False
        return record.status == "diverged" or all(evaluation_key(item) in finals for item in run.evaluations)

    return [run for run in plan.runs.values() if not has_result(run)]


def train_plan(plan: Plan, folder: Path, machine: Machine, listen: Listener) -> int:
    """Train what is missing and keep it. Returns how many runs were trained; `listen` hears every message."""
    with closing(Store.create(folder)) as store:
        runs = missing(plan, store)
        kept = store.checkpoints()
        _sweep(folder, kept)
        listen(
            Begun(
                labels={run.identity: run.label for run in runs},
                epochs={run.identity: run.epochs for run in runs},
                done={run.identity: max((state.epoch for state in resumable(run, kept)), default=0) for run in runs},
                stored=len(plan.runs) - len(runs),
                workers=min(machine.processes(), len(runs)),
            )
        )
        jobs = [_job(run, plan, folder, machine, resumable(run, kept)) for run in runs]
        _work(jobs, store, folder, machine, listen)
    return len(runs)


def show_plan(study: Study, plan: Plan, folder: Path, machine: Machine, listen: Listener) -> None:
    """Make the exhibits that are not there yet, of the runs that the report is about."""
    with closing(Store.create(folder)) as store:
        records, kept = store.records(), store.checkpoints()
        wanted = to_show(Tally(study, plan, records))
        new = {
            identity: examples
            for identity, examples in wanted.items()
            if identity not in records.exhibits or (examples and "examples" not in records.exhibits[identity])
        }
        if new:
            listen(Note(text=f"making exhibits of {len(new)} run{'s' if len(new) > 1 else ''}"))
        jobs = [
            replace(_job(run, plan, folder, machine, resumable(run, kept)), examples=new[run.identity])
            for run in (plan.runs[identity] for identity in new)
        ]
        _work(jobs, store, folder, machine, listen)


def _job(run: Run, plan: Plan, folder: Path, machine: Machine, states: tuple[CheckpointRecord, ...]) -> Job:
    return Job(
        run=run.model_dump(mode="json"),
        folder=str(folder),
        data_dir=str(machine.data_dir.resolve()) if machine.data_dir else None,
        device=machine.device,
        designs_from=plan.designs_from,
        checkpoints=states,
    )


def _work(jobs: Sequence[Job], store: Store, folder: Path, machine: Machine, listen: Listener) -> None:
    with closing(run_jobs(jobs, machine.processes())) as messages:
        for message in messages:
            keep(store, folder, message)
            listen(message)


def _sweep(folder: Path, kept: list[CheckpointRecord]) -> None:
    """Remove files that a killed process wrote but could not have acknowledged."""
    known = {record.file for record in kept}
    for path in (folder / CHECKPOINTS).glob("*") if (folder / CHECKPOINTS).is_dir() else ():
        if path.name not in known:
            path.unlink(missing_ok=True)  # a worker that outlives a killed driver for a moment may rename it


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
        elif isinstance(message, Shown):
            for exhibit in message.exhibits:
                store.add_exhibit(exhibit)
        for record in superfluous:
            store.drop_checkpoint(record)
    for record in superfluous:
        (folder / CHECKPOINTS / record.file).unlink(missing_ok=True)


def _older(store: Store, identity: str, epoch: int) -> list[CheckpointRecord]:
    """A run keeps its last two states while it trains, the second in case the first is damaged, and one at its end."""
    return [record for record in store.checkpoints() if record.identity == identity and record.epoch < epoch]

"""A small study of the real designs on the tiny data set, and what a results folder holds of it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from support import tiny
from tiebreak import catalog
from tiebreak.drive import runner
from tiebreak.drive.jobs import StrategyOption
from tiebreak.drive.local_workers import Pool
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import EpochDone, Job, Message, decode
from tiebreak.drive.runner import Listener, open_driver
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, Run
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.record import CheckpointRecord, EpochRecord
from tiebreak.results.store import Store
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import Split


def write_data(folder: Path) -> Path:
    """The tiny data set in a folder of its own."""
    folder.mkdir(exist_ok=True)
    return tiny.write_data(folder)


def small_study(
    *, epochs: int = 3, batch: int = 8, kind: str = "adam", schedule: str = "constant", **more: Any
) -> Study:
    """Two arms, two seeds, one learning rate; `more` replaces whole keys."""
    return Study.model_validate(
        {
            "name": "small",
            "question": "Does max pooling beat stride 2 on a toy?",
            "task": "classify",
            "data": "pneumoniamnist",
            "protocol": "audited",
            "metric": "accuracy",
            "margin": 0.01,
            "seeds": 2,
            "budget": {"epochs": epochs, "batch": batch},
            "optimiser": {"kind": kind, "schedule": {"kind": schedule}},
            "fixed": {"lr": 0.003},
            "arms": [{"name": "pool", "design": "cnn-pool"}, {"name": "strided", "design": "cnn-strided"}],
            "comparisons": [{"a": "pool", "b": "strided"}],
            **more,
        }
    )


def one_arm(**more: Any) -> Study:
    """Two arms that are the same, since a comparison needs two, and one seed: a single run."""
    arms = [{"name": "still", "design": "cnn-strided"}, {"name": "moved", "design": "cnn-strided"}]
    return small_study(**{"seeds": 1, "arms": arms, "comparisons": [{"a": "still", "b": "moved"}], **more})


def one_run(data_dir: Path, **more: Any) -> Run:
    """The only run of `one_arm`."""
    (run,) = make_plan(one_arm(**more), data_dir).runs.values()
    return run


def make_job(run: Run, folder: Path, data_dir: Path, checkpoints: tuple[CheckpointRecord, ...] = ()) -> Job:
    """The run as a job."""
    return cohort_job([run], folder, data_dir, checkpoints=(checkpoints,))


def cohort_job(runs: Sequence[Run], folder: Path, data_dir: Path, **more: Any) -> Job:
    """The runs as one job."""
    if not folder.exists():
        folder.mkdir(parents=True)  # a worker does not make it: it would hide that somebody removed it
    contents = tuple(run.model_dump(mode="json") for run in runs)
    return Job(runs=contents, folder=str(folder), data_dir=str(data_dir), device="cpu", **more)


def one_epoch(message: Message) -> tuple[EpochRecord, CheckpointRecord]:
    """The record and the state of an epoch of a single run."""
    assert isinstance(message, EpochDone)
    (record,), (checkpoint,) = message.records, message.checkpoints
    return record, checkpoint


def split_of(run: Run, data_dir: Path, name: str, dtype: torch.dtype = torch.float64) -> Split:
    """One split of the run's data, its images in `dtype`."""
    task = catalog.TASKS[run.task]
    split = task.split(task.load(run.data, data_dir), name, run.options, {})
    return {"images": split["images"].to(dtype), "labels": split["labels"]}


def network_of(run: Run, data_dir: Path, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    """The run's design, freshly initialised by a fixed key."""
    task = catalog.TASKS[run.task]
    return catalog.DESIGNS[run.design].network(task.shape(task.load(run.data, data_dir)), run.build, 11).to(dtype)


class PoolHere(Pool):
    """Does the jobs in this process, one after the other, with the real worker: starting a process takes seconds."""

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[list[Message], None, None]:
        from tiebreak.drive.worker import do_job

        for job in jobs:
            out = io.StringIO()
            with one_thread():
                do_job(job, out)
            yield [decode(line) for line in out.getvalue().splitlines()]


@contextmanager
def workers_here() -> Iterator[None]:
    """Training in this process, not in processes of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Pool", PoolHere)
        yield


def loop_machine(data_dir: Path | None = None) -> Machine:
    """One worker that trains run after run: nothing is timed, nothing traced."""
    return Machine(workers=1, data_dir=data_dir, strategy="loop")


def train_plan(plan: Plan, folder: Path, machine: Machine, listen: Listener) -> int:
    """Train what the folder misses of the plan. Returns how many runs that was."""
    with open_driver(plan, folder, machine, listen) as driver:
        return driver.train()


def train_in(
    folder: Path, data_dir: Path, study: Study, workers: int = 1, strategy: StrategyOption = "loop"
) -> tuple[Plan, list[Message]]:
    """Train what the folder misses of the study, in this process. The plan, and every message."""
    folder.mkdir(exist_ok=True)
    plan = make_plan(study, data_dir)
    heard: list[Message] = []
    with workers_here():
        train_plan(plan, folder, Machine(workers=workers, data_dir=data_dir, strategy=strategy), heard.append)
    return plan, heard


def epochs_in(messages: list[Message]) -> list[tuple[str, int]]:
    """The epochs that were trained: trajectory and number."""
    done = [item for item in messages if isinstance(item, EpochDone)]
    return [(record.trajectory, record.epoch) for item in done for record in item.records]


def contents(folder: Path) -> dict[str, Any]:
    """All that a folder holds and that must not depend on interruptions: no clocks, no provenance."""
    with closing(Store.open(folder)) as store:
        records, kept = store.records(), store.checkpoints()
    return {
        "epochs": {(key, epoch): row.metrics for key, rows in records.epochs.items() for epoch, row in rows.items()},
        "runs": {key: (row.trajectory, row.status, row.epoch, row.reason) for key, row in records.runs.items()},
        "finals": {
            (key, name): (row.metrics, {outcome: values.tobytes() for outcome, values in row.outcomes.items()})
            for key, rows in records.finals.items()
            for name, row in rows.items()
        },
        "checkpoints": {(row.identity, row.epoch): file_hash(folder, row) for row in kept},
    }


def file_hash(folder: Path, record: CheckpointRecord) -> str:
    """The sha256 of a checkpoint's file as it is on the disk."""
    return hashlib.sha256((folder / CHECKPOINTS / record.file).read_bytes()).hexdigest()


@contextmanager
def one_thread() -> Iterator[None]:
    """As many threads as a worker has: bit-equal numbers need the same count."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def worker_processes(driver: int | None = None) -> list[int]:
    """The worker processes that a process has started."""
    return [child.pid for child in psutil.Process(driver).children() if "tiebreak.drive.worker" in _command(child)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def is_alive(process: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""Training jobs done in this process, and what their messages say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiebreak.drive import worker
from tiebreak.drive.messages import EpochDone, Job, Message, RunEnded
from tiebreak.plan.runs import Run
from tiebreak.results.record import CheckpointRecord, Strategy


def job_of(
    runs: Sequence[Run],
    designs_from: str | None,
    folder: Path,
    data: Path,
    saved: Mapping[str, list[CheckpointRecord]] | None = None,
    *,
    strategy: Strategy = "fused",
) -> Job:
    """A training job on the CPU, from these checkpoints on. Its folder exists, as that of every study does."""
    folder.mkdir(parents=True, exist_ok=True)
    return Job(
        runs=tuple(run.model_dump(mode="json") for run in runs),
        folder=str(folder),
        data_dir=str(data),
        device="cpu",
        strategy=strategy,
        designs_from=designs_from,
        checkpoints=tuple(tuple((saved or {}).get(run.identity, ())) for run in runs),
    )


def train_job(job: Job, messages: int | None = None) -> list[Message]:
    """Do a job, or its first messages."""
    return list(itertools.islice(worker.train(job, lambda message: None), messages))


def saved_in(messages: Sequence[Message]) -> dict[str, list[CheckpointRecord]]:
    """The checkpoints by run, the last first."""
    found: dict[str, list[CheckpointRecord]] = {}
    for message in messages:
        for record in message.checkpoints if isinstance(message, EpochDone) else ():
            found.setdefault(record.identity, []).insert(0, record)
    return found


def numbers(messages: Sequence[Message]) -> dict[Any, Any]:
    """What must not depend on interruptions and accidents: metrics, states (by their hash), ends, outcomes."""
    found: dict[Any, Any] = {}
    for message in messages:
        if isinstance(message, EpochDone):
            found |= {(record.trajectory, record.epoch): record.metrics for record in message.records}
            found |= {(record.identity, record.epoch): record.sha256 for record in message.checkpoints}
        elif isinstance(message, RunEnded):
            end = message.record
            finals = [
                (final.evaluation, final.metrics, {name: values.tobytes() for name, values in final.outcomes.items()})
                for final in message.finals
            ]
            found[end.identity] = end.status, end.epoch, end.reason, finals
    return found


def ends(messages: Sequence[Message]) -> dict[str, str]:
    """How each run ended."""
    return {item.record.identity: item.record.status for item in messages if isinstance(item, RunEnded)}

"""The messages of a job that is done in this process, and what of them must not depend on anything around it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from support.small_study import one_epoch
from tiebreak.drive.messages import EpochDone, Job, Message, RunEnded
from tiebreak.drive.worker import train


def do(job: Job, messages: int | None = None) -> list[Message]:
    """The messages of a job, or only the first ones."""
    return list(itertools.islice(train(job, lambda message: None), messages))


def numbers(messages: list[Message]) -> list[Any]:
    """What the job of a single run must produce whatever happens around it: no clocks."""
    found: list[Any] = []
    for message in messages:
        if isinstance(message, EpochDone):
            record, checkpoint = one_epoch(message)
            found.append((record.epoch, record.metrics, checkpoint))
        elif isinstance(message, RunEnded):
            finals = [
                (item.metrics, {name: values.tobytes() for name, values in item.outcomes.items()})
                for item in message.finals
            ]
            provenance = {**message.record.provenance, "ms_per_step": ""}
            found.append((replace(message.record, provenance=provenance), finals))
    return found


def epochs_of(messages: list[Message]) -> list[EpochDone]:
    """The messages of epochs."""
    return [message for message in messages if isinstance(message, EpochDone)]


def checkpoints(messages: list[Message]) -> list[Any]:
    """The checkpoint of every epoch of a single run."""
    return [one_epoch(message)[1] for message in epochs_of(messages)]

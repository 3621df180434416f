"""The fused engine that was timed last: the job that trains the same runs next goes on with it, traced and captured.

It belongs to one worker process, and takes memory of the GPU: the next job uses it or frees it.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace

import torch

from tiebreak.drive.messages import Job
from tiebreak.tasks.interface import Split
from tiebreak.train.fused.engine import Fused
from tiebreak.train.run_group import RunGroup


@dataclass(frozen=True)
class Kept:
    """An engine of all runs of a job, with the training examples that its graph reads."""

    job: Job
    engine: Fused
    train: Split


_KEPT: list[Kept] = []  # one at most


def keep(job: Job, engine: Fused, train: Split) -> None:
    """Keep an engine that was not compiled, for the next job."""
    _KEPT[:] = [Kept(job, engine, train)]


def free_unless_of(job: Job) -> None:
    """Forget the engine if the job does not train the runs that it was made for."""
    if _KEPT and not _belongs(_KEPT[0], job):
        _free(job)


def take(job: Job, group: RunGroup) -> tuple[Fused, RunGroup] | None:
    """The engine with the states of this group, if these are all runs of the job; and the group with its examples."""
    if _KEPT and len(group.runs) != len(job.runs):
        _free(job)
    if not _KEPT:
        return None
    kept = _KEPT.pop()
    kept.engine.restart(group.states)
    return kept.engine, replace(group, loaded={"train": kept.train})


def _free(job: Job) -> None:
    _KEPT.clear()
    gc.collect()
    if job.device != "cpu":
        torch.cuda.empty_cache()


def _belongs(kept: Kept, job: Job) -> bool:
    if job.work != "train" or job.strategy != "fused" or job.compiled is not False:
        return False
    names = ("runs", "device", "precision", "designs_from", "data_dir")
    return all(getattr(job, name) == getattr(kept.job, name) for name in names)

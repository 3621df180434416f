"""A job given to a worker: what is left of it, so that another worker can continue when the first one dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tiebreak.drive.failures import failed
from tiebreak.drive.messages import EpochDone, Job, Message, Note, RunEnded
from tiebreak.plan.runs import Run
from tiebreak.results.record import CheckpointRecord

MOST_DEATHS = 3  # of workers with one job: then its runs fail
KEPT = 2  # checkpoints of a run, by the recorder too: the older one is there in case the newer one is damaged


class Assignment:
    """A job and what its workers have reported so far. Until a worker dies it only takes notes."""

    def __init__(self, job: Job) -> None:
        self.job = job  # what is left of it
        self._ended: set[str] = set()
        self._saved: dict[str, tuple[CheckpointRecord, ...]] = {}  # by identity, furthest first
        self._epochs: dict[str, int] = {}  # done, by trajectory
        self._deaths = 0

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: every run has ended, or too many workers have died."""
        return not self.job.runs or self._deaths >= MOST_DEATHS

    def note(self, message: Message) -> None:
        """Take note of a message that the driver has stored."""
        if isinstance(message, EpochDone):
            for state in message.checkpoints:
                self._saved[state.identity] = (state, *self._saved.get(state.identity, ()))[:KEPT]
            self._epochs |= {record.trajectory: record.epoch for record in message.records}
        elif isinstance(message, RunEnded):
            self._ended.add(message.record.identity)

    def note_death(self, description: str) -> Iterator[Message]:
        """The messages when a worker has died: that the job is tried again, or that its runs have failed.

        What is left of the job are the runs that have not ended, from their last recorded checkpoints.
        """
        self._deaths += 1
        runs = [Run.model_validate(content) for content in self.job.runs]
        saved = zip(runs, self.job.checkpoints or ((),) * len(runs), strict=True)
        left = [(run, self._saved.get(run.identity, old)) for run, old in saved if run.identity not in self._ended]
        self.job = replace(
            self.job,
            runs=tuple(run.model_dump(mode="json") for run, _ in left),
            checkpoints=tuple(states for _, states in left),
        )
        if not left:
            return
        first = left[0][0]
        if self._deaths < MOST_DEATHS:
            others = f" and {len(left) - 1} more" if len(left) > 1 else ""
            again = f"trying again from the last checkpoint (attempt {self._deaths + 1} of {MOST_DEATHS})"
            yield Note(text=f"{first.label}{others}: the worker process {description}; {again}")
        elif self.job.work == "exhibits":
            yield Note(text=f"{first.label}: no exhibits: the worker process {description}, {MOST_DEATHS} times")
        else:
            for run, states in left:
                reached = self._epochs.get(run.trajectory, states[0].epoch if states else 0)
                yield failed(run, reached, f"the worker process {description}, {MOST_DEATHS} times")

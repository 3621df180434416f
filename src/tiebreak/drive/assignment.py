"""A job given to a worker: what is left of it, so that another worker can continue when the first one dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tiebreak.drive.failures import failed
from tiebreak.drive.messages import EpochDone, Job, Message, Note, RunEnded
from tiebreak.plan.runs import Run
from tiebreak.results.record import CheckpointRecord

MOST_DEATHS = 3  # of workers with one job: then its runs fail
MOST_MACHINES = 20  # lost with one job: it may be what ends them
NOT_NEEDED = {"exhibits": "no exhibits", "time": "not timed in turns"}  # work whose failure fails no run
KEPT = 2  # checkpoints of a run, by the recorder too: the older one is there in case the newer one is damaged


class Assignment:
    """A job and what its workers have reported so far. Until a worker dies it only takes notes."""

    def __init__(self, job: Job) -> None:
        self.job = job  # what is left of it
        self._ended: set[str] = set()
        self._saved: dict[str, tuple[CheckpointRecord, ...]] = {}  # by identity, furthest first
        self._epochs: dict[str, int] = {}  # done, by trajectory
        self._deaths = 0  # of its workers alone
        self._machines = 0  # lost, with the worker on them

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: every run has ended, or too many workers have died."""
        return not self.job.runs or self._given_up

    @property
    def _given_up(self) -> bool:
        return self._deaths >= MOST_DEATHS or self._machines >= MOST_MACHINES

    def note(self, message: Message) -> None:
        """Take note of a message that the driver has stored."""
        if isinstance(message, EpochDone):
            for state in message.checkpoints:
                self._saved[state.identity] = (state, *self._saved.get(state.identity, ()))[:KEPT]
            self._epochs |= {record.trajectory: record.epoch for record in message.records}
        elif isinstance(message, RunEnded):
            self._ended.add(message.record.identity)

    def note_death(self, description: str, *, machine_lost: bool = False) -> Iterator[Message]:
        """The messages when a worker has died: that the job is tried again, or that its runs have failed.

        What is left of the job are the runs that have not ended, from their last recorded checkpoints. A machine of a
        cluster that is lost with its worker is hardly the job's fault.
        """
        self._deaths += not machine_lost
        self._machines += machine_lost
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
        times = f"{self._machines if machine_lost else self._deaths} times"
        if not self._given_up:
            others = f" and {len(left) - 1} more" if len(left) > 1 else ""
            attempt = "" if machine_lost else f" (attempt {self._deaths + 1} of {MOST_DEATHS})"
            again = f"trying again from the last checkpoint{attempt}"
            yield Note(text=f"{first.label}{others}: the worker process {description}; {again}")
        elif self.job.work in NOT_NEEDED:
            lacking = NOT_NEEDED[self.job.work]
            yield Note(text=f"{first.label}: {lacking}: the worker process {description}, {times}")
        else:
            for run, states in left:
                reached = self._epochs.get(run.trajectory, states[0].epoch if states else 0)
                yield failed(run, reached, f"the worker process {description}, {times}")

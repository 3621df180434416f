"""Tells readers beside a run how fast it goes: keeps the file of `results.live_progress` up to date."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiebreak.drive.messages import ClusterState, MachineState, Message, Note, TrainingStarted
from tiebreak.drive.run_progress import RunProgress
from tiebreak.files import failure
from tiebreak.results.live_progress import LiveCohort, LiveProgress, MachineLoad, remove_live, write_live
from tiebreak.text import one_line

EVERY = 1.0  # seconds between two writings, at least
SHARE = 0.01  # of the time that writing may take: seldom with very many runs
ENOUGH = 1.0  # seconds of progress before the time left is estimated
MOST_TEXT = 200  # characters of what is being done

Clock = Callable[[], float]


@contextmanager
def progress_file(folder: Path, listen: Callable[[Message], None]) -> Iterator[Callable[[Message], None]]:
    """A listener that passes every message on, and keeps the file while the block runs."""
    kept = ProgressFile(folder, listen)
    kept.write()
    try:
        yield kept.on_message
    finally:
        with suppress(OSError):  # what stays names a process that is no more: no reader believes it
            remove_live(folder)


class ProgressFile:
    """Writes how far the runs are. A file that cannot be written is told once and then left alone."""

    def __init__(self, folder: Path, listen: Callable[[Message], None], clock: Clock = time.monotonic) -> None:
        self._folder, self._listen, self._clock = folder, listen, clock
        self._progress, self._content = RunProgress(), LiveProgress.here(folder)
        self._next, self._doing = -math.inf, "starting"
        self._machines: tuple[MachineLoad, ...] = ()
        self._first: tuple[float, float] | None = None  # when the first progress was made, and how much it was

    def on_message(self, message: Message) -> None:
        """Take in a message and pass it on."""
        self._progress.on_message(message)
        if isinstance(message, TrainingStarted):
            self._first, self._doing = None, "training"
        elif isinstance(message, Note):
            self._doing = one_line(message.text, MOST_TEXT)
        elif isinstance(message, ClusterState):
            self._machines = tuple(map(_load, message.machines))
        if self._clock() >= self._next:
            self.write()
        self._listen(message)

    def write(self) -> None:
        """Write the file as of now."""
        start, progress = time.thread_time(), self._progress
        found = {
            "updated": time.time(),
            "doing": self._doing,
            "seconds_left": self._seconds_left(),
            "rate": _known(sum(progress.rates.values())),
            "cohorts": self._cohorts(),
            "machines": self._machines,
        }
        self._content = self._content.model_copy(update=found)
        try:
            write_live(self._folder, self._content)
            self._next = self._clock() + max(EVERY, (time.thread_time() - start) / SHARE)
        except OSError as error:
            self._next = math.inf  # never again
            self._listen(Note(text=f"{failure(self._folder, 'the time left cannot be written', error)}"))

    def _seconds_left(self) -> float | None:
        share, now = self._progress.share() if self._progress.runs else 0.0, self._clock()
        if self._first is None:
            self._first = (now, share) if share > 0 else None
            return None
        since, before = self._first
        spent, gained = now - since, share - before
        return spent * max(0.0, 1 - share) / gained if gained > 0 and spent >= ENOUGH else None

    def _cohorts(self) -> tuple[LiveCohort, ...]:
        """The cohorts that are being trained; the runs of each that have not begun count, too."""
        progress, left = self._progress, dict[str, float]()
        for one, run in progress.runs.items():
            left[run.cohort] = left.get(run.cohort, 0.0) + run.epochs - progress.epochs[one]
        found = []
        for name, training in progress.cohorts().items():
            rate = sum(progress.rates[one] for one in training)
            seconds = _known(left[name] * progress.steps / rate) if rate > 0 else None
            found.append(LiveCohort(name=name, epochs_left=max(0.0, left[name]), seconds_left=seconds))
        return tuple(found)


def _load(machine: MachineState) -> MachineLoad:
    return MachineLoad(
        name=one_line(machine.name, MOST_TEXT),
        cores=machine.cores,
        cores_used=machine.cores_in_use,
        gpus=machine.gpus,
        jobs=machine.jobs,
        alive=machine.alive,
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) and value > 0 else None

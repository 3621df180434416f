"""Progress on the screen: turns the messages of training into what the terminal displays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console

from tiebreak.drive.messages import EpochDone, Message, Note, PendingRun, Progress, RunEnded, TrainingStarted
from tiebreak.report.terminal.training_display import CohortState, TrainingProgress, TrainingState
from tiebreak.results.record import EpochRecord, Status
from tiebreak.text import number_of

MANY_RUNS = 100  # then the state, a sum over all runs, is made at most every REFRESH_SECONDS
REFRESH_SECONDS = 0.2


class ProgressListener:
    """A listener for `api.run`. Shows nothing when there is nothing to train."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._shown, self._stale = -math.inf, False  # when, and whether something has happened since
        self._display: TrainingProgress | None = None
        self._runs: dict[str, PendingRun] = {}
        self._paths: dict[str, list[str]] = {}  # trajectory -> identities
        self._steps, self._unit = 1, "epoch"
        self._epochs: dict[str, float] = {}  # identity -> epochs done
        self._rates: dict[str, float] = {}  # identity -> its share of the steps per second, while it is trained
        self._ended: dict[str, Status] = {}

    def __enter__(self) -> Self:
        """Nothing is shown before training begins."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state on the screen."""
        self._close()

    def _close(self) -> None:
        if self._display is not None:
            if self._stale:
                self._show()
            self._display.__exit__(None, None, None)
            self._display = None

    def on_message(self, message: Message) -> None:
        """Show a message."""
        if isinstance(message, TrainingStarted):
            self._start(message)
        elif isinstance(message, Note):
            self._print(message.text)
        elif isinstance(message, Progress):
            self._reach({one: message.epochs for one in message.identities if one in self._runs}, message.rate)
        elif isinstance(message, EpochDone):
            known = [record for record in message.records if record.trajectory in self._paths]
            reached = {self._identity(record): float(record.epoch) for record in known}
            seconds = sum(record.seconds.get("train", 0.0) for record in message.records)
            self._reach(reached, len(reached) * self._steps / seconds if seconds else 0.0)
        elif isinstance(message, RunEnded):
            self._end(message.record.identity, message.record.status, message.record.reason)

    def _start(self, started: TrainingStarted) -> None:
        self._runs, self._steps, self._unit = dict(started.runs), started.steps, started.unit
        self._epochs = {identity: float(run.done) for identity, run in started.runs.items()}
        self._rates, self._ended, self._paths = {}, {}, {}
        for identity, run in started.runs.items():
            self._paths.setdefault(run.trajectory, []).append(identity)
        if not started.runs:
            return
        self._print(_headline(started))
        self._display = TrainingProgress(self._console)
        self._display.__enter__()

    def _identity(self, record: EpochRecord) -> str:
        """The run that an epoch belongs to; of two with one trajectory, the one that is nearest before it."""
        return max(
            self._paths[record.trajectory],
            key=lambda one: (one not in self._ended, self._epochs[one] < record.epoch, self._epochs[one]),
        )

    def _reach(self, epochs: dict[str, float], rate: float) -> None:
        self._epochs |= epochs
        self._rates |= dict.fromkeys(epochs, rate / max(1, len(epochs)))
        self._show_if_due()

    def _end(self, identity: str, status: Status, reason: str) -> None:
        run = self._runs[identity]
        self._epochs[identity], self._ended[identity] = float(run.epochs), status
        self._rates.pop(identity, None)
        if status != "done":
            self._print(f"{run.label}: {status}: {reason}")
        self._show_if_due()
        if len(self._ended) == len(self._runs):
            self._close()

    def _show_if_due(self) -> None:
        self._stale = True
        if len(self._runs) <= MANY_RUNS or self._clock() - self._shown >= REFRESH_SECONDS:
            self._show()

    def _show(self) -> None:
        if self._display is None:
            return
        self._shown, self._stale = self._clock(), False
        runs, ended = self._runs, list(self._ended.values())
        left = {identity: run.epochs - run.done for identity, run in runs.items()}
        gained = {identity: self._epochs[identity] - run.done for identity, run in runs.items()}
        cost = sum(run.cost * left[identity] for identity, run in runs.items())
        spent = sum(run.cost * gained[identity] for identity, run in runs.items())
        finished = len(ended) == len(runs)
        self._display.show(
            TrainingState(
                share=1.0 if finished else max(0.0, spent / cost) if cost else 0.0,
                epochs=max(0.0, sum(gained.values())),
                total_epochs=sum(left.values()),
                done=ended.count("done"),
                diverged=ended.count("diverged"),
                failed=ended.count("failed"),
                runs=len(runs),
                cohorts=self._cohorts(),
                rate=sum(self._rates.values()),
                unit=self._unit,
            )
        )

    def _cohorts(self) -> list[CohortState]:
        """The cohorts that are being trained, in the order in which they began."""
        groups: dict[str, list[str]] = {}
        for identity in self._rates:
            groups.setdefault(self._runs[identity].cohort, []).append(identity)
        found = []
        for name, identities in groups.items():
            longest = max(self._runs[identity].epochs for identity in identities)
            inside = [min(int(self._epochs[identity]) + 1, longest) for identity in identities]
            found.append(
                CohortState(name=name, runs=len(identities), first=min(inside), last=max(inside), epochs=longest)
            )
        return found

    def _print(self, text: str) -> None:
        if self._display is not None:
            self._display.note(text)
        else:
            self._console.print(text, markup=False, highlight=False)


def _headline(started: TrainingStarted) -> str:
    count = len(started.runs)
    fused = sum(run.strategy == "fused" for run in started.runs.values())
    stored = f" ({started.stored} {'is' if started.stored == 1 else 'are'} stored)" if started.stored else ""
    text = f"training {number_of(count, 'run')}{stored}"
    if not fused:
        at_once = min(started.workers, count)
        return f"{text}, {at_once} at a time" if at_once > 1 else f"{text}, one after the other" if count > 1 else text
    how = "fused" if fused == count else f"{fused} of them fused"
    return f"{text}, {how}, in {number_of(max(1, started.workers), 'process', 'processes')}"

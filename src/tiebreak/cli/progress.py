"""Progress on the screen: turns the messages of training into what the terminal displays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console

from tiebreak.drive.messages import Message, Note, RunEnded, TrainingStarted
from tiebreak.drive.run_progress import RunProgress
from tiebreak.report.terminal.safe_console import SafeConsole
from tiebreak.report.terminal.training_display import CohortState, TrainingProgress, TrainingState
from tiebreak.results.record import RunRecord
from tiebreak.system import in_notebook
from tiebreak.text import number_of

MANY_RUNS = 100  # then the state, a sum over all runs, is made at most every REFRESH_SECONDS
REFRESH_SECONDS = 0.2


class Display(Protocol):
    """What shows the progress of training: `TrainingProgress` on a terminal, `NotebookProgress` in a notebook."""

    def __enter__(self) -> Self:
        """Training begins."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state to see."""

    def show(self, state: TrainingState) -> None:
        """Show this state from now on."""

    def note(self, text: str) -> None:
        """A line that stays."""


def progress_listener(folder: Path, **options: Any) -> ProgressListener:
    """What shows the progress of a study in this folder here: in a notebook, with pictures."""
    console = SafeConsole(**options)
    if not in_notebook():
        return ProgressListener(console)
    from tiebreak.watch.notebook_progress import NotebookProgress

    shown = NotebookProgress(folder, console)  # one for all batches of seeds
    return ProgressListener(console, lambda: shown)


class ProgressListener:
    """A listener for `api.run`. Shows nothing when there is nothing to train."""

    def __init__(
        self,
        console: Console,
        display: Callable[[], Display] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._new_display = console, display or partial(TrainingProgress, console)
        self._clock, self._shown, self._stale = clock, -math.inf, False  # when, and whether there is news since then
        self._display: Display | None = None
        self._progress = RunProgress()

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
        further = self._progress.on_message(message)
        if isinstance(message, TrainingStarted):
            self._start(message)
        elif isinstance(message, Note):
            self._print(message.text)
        elif isinstance(message, RunEnded):
            self._end(message.record)
        elif further:
            self._show_if_due()

    def _start(self, started: TrainingStarted) -> None:
        if not started.runs:
            return
        self._print(_headline(started))
        self._display = self._new_display()
        self._display.__enter__()

    def _end(self, record: RunRecord) -> None:
        if record.status != "done":
            self._print(f"{self._progress.runs[record.identity].label}: {record.status}: {record.reason}")
        self._show_if_due()
        if len(self._progress.ended) == len(self._progress.runs):
            self._close()

    def _show_if_due(self) -> None:
        self._stale = True
        if len(self._progress.runs) <= MANY_RUNS or self._clock() - self._shown >= REFRESH_SECONDS:
            self._show()

    def _show(self) -> None:
        if self._display is None:
            return
        self._shown, self._stale = self._clock(), False
        progress = self._progress
        runs, ended = progress.runs, list(progress.ended.values())
        self._display.show(
            TrainingState(
                share=progress.share(),
                epochs=max(0.0, sum(progress.epochs[identity] - run.done for identity, run in runs.items())),
                total_epochs=sum(run.epochs - run.done for run in runs.values()),
                done=ended.count("done"),
                diverged=ended.count("diverged"),
                failed=ended.count("failed"),
                runs=len(runs),
                cohorts=self._cohorts(),
                rate=sum(progress.rates.values()),
                unit=progress.unit,
            )
        )

    def _cohorts(self) -> list[CohortState]:
        progress, found = self._progress, []
        for name, identities in progress.cohorts().items():
            longest = max(progress.runs[identity].epochs for identity in identities)
            inside = [min(int(progress.epochs[identity]) + 1, longest) for identity in identities]
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

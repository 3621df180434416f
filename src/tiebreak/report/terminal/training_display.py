"""The progress of training: a live display in a terminal, else plain lines. At most 80 columns, safe for any text."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tiebreak.report import formatting
from tiebreak.text import number_of, printable, rounded

ENOUGH_SECONDS = 1.0  # of progress, before the time left is estimated
LINE_SECONDS = 10.0  # without a terminal, a line at most this often
BAR_WIDTH = 20
ROUNDING = 1e-6  # parts of epochs that were added up may miss the total by this
MOST_COHORTS = 3  # named at once


@dataclass(frozen=True, kw_only=True)
class CohortState:
    """Runs of one cohort that are being trained: how many, and the first and last epoch that they are in."""

    name: str
    runs: int
    first: int
    last: int
    epochs: int

    def epoch(self) -> str:
        """The epoch that they are in."""
        epoch = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"epoch {epoch} of {self.epochs}"


@dataclass(frozen=True, kw_only=True)
class TrainingState:
    """The progress of a study: `share` weights the epochs by their cost, `epochs` counts them."""

    share: float
    epochs: float
    total_epochs: int
    done: int  # runs that finished
    diverged: int
    failed: int
    runs: int
    cohorts: Sequence[CohortState] = ()
    rate: float = 0.0  # steps per second over all runs that are being trained
    unit: str = "epoch"  # what `epochs` counts: of programs, runs

    def current_runs(self) -> str:
        """How many runs are being trained at the moment, how fast, and which."""
        alive = number_of(sum(state.runs for state in self.cohorts), "run")
        speed = f"{steps_per_second(self.rate)} over {alive}" if self.rate > 0 else alive
        parts = [
            f"{f'{state.runs} ' if len(self.cohorts) > 1 else ''}{state.name}"
            + (f", {state.epoch()}" if self.unit == "epoch" else "")
            for state in self.cohorts[:MOST_COHORTS]
        ]
        if len(self.cohorts) > MOST_COHORTS:
            parts.append(f"and {len(self.cohorts) - MOST_COHORTS} more")
        return f"{speed}: {'; '.join(parts)}"

    def ended_runs(self) -> str:
        """The runs that ended, and how."""
        parts = [f"{self.done} of {number_of(self.runs, 'run')} done"]
        parts += [f"{many} {what}" for many, what in ((self.diverged, "diverged"), (self.failed, "failed")) if many]
        return ", ".join(parts)

    def progress(self) -> str:
        """The share of the work that is done, and the epochs where they are known."""
        percent = math.floor(100 * min(self.share + ROUNDING, 1.0))  # never 100 % while something is left
        if self.unit != "epoch":
            return f"{percent} %"
        return f"{percent} %: {math.floor(self.epochs + ROUNDING):,} of {number_of(self.total_epochs, self.unit)}"

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: the last epoch is trained and every run is tested."""
        return self.share >= 1 - ROUNDING and self.done + self.diverged + self.failed >= self.runs


def steps_per_second(rate: float) -> str:
    """A rate in words, two digits of it.

    >>> steps_per_second(41_234.5), steps_per_second(870), steps_per_second(0.73)
    ('41,000 steps/s', '870 steps/s', '0.73 steps/s')
    """
    return f"{rounded(rate)} steps/s"


class TimeLeft:
    """How long training will still take, judged by what was done since the first progress."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._started = clock, clock()
        self._first: tuple[float, float] | None = None  # when the first progress was made, and how much it was

    def see(self, state: TrainingState) -> None:
        """Take note of a state."""
        if self._first is None and state.share > 0:
            self._first = self._clock(), state.share

    def words(self, state: TrainingState) -> str:
        """The time left, or the time in all at the end."""
        if state.share >= 1 - ROUNDING and not state.ended:
            return "testing"
        if state.ended:
            return f"{formatting.duration(self._clock() - self._started)} in all"
        since, share = self._first or (self._clock(), state.share)
        spent, gained = self._clock() - since, state.share - share
        if gained <= 0 or spent < ENOUGH_SECONDS:  # the start of processes says nothing about the rate
            return "starting"
        return f"about {formatting.duration(spent * (1 - state.share) / gained)} left"


class TrainingProgress:
    """Shows the progress of training: live in a terminal, else plain lines every ten seconds and at the end."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._state: TrainingState | None = None
        self._printed, self._time = clock(), TimeLeft(clock)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        """Start the clock and, in a terminal, the display."""
        self._printed, self._time = self._clock(), TimeLeft(self._clock)
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, get_renderable=self._rendered)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state on the screen."""
        if self._live is not None:
            self._live.stop()
        elif self._state is not None:
            self._print_lines()

    def show(self, state: TrainingState) -> None:
        """Show this state from now on."""
        self._state = state
        self._time.see(state)
        if self._live is None and self._clock() - self._printed >= LINE_SECONDS:
            self._print_lines()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(Text(printable(text)))

    def _rendered(self) -> Group:
        state = self._state
        if state is None:
            return Group(Text("starting"))
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=min(state.share, 1.0), width=BAR_WIDTH)
        row.add_row(bar, Text(f"{state.progress()}, {self._time.words(state)}"))
        lines = [state.ended_runs()]
        if state.share < 1 - ROUNDING:  # the display keeps its height until the end
            lines.append(printable(state.current_runs()) if state.cohorts else "")
        return Group(row, *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))

    def _print_lines(self) -> None:
        self._printed = self._clock()
        state = self._state
        assert state is not None
        self.note(f"{state.progress()}, {state.ended_runs()}, {self._time.words(state)}")
        if state.cohorts:
            self.note(f"  {state.current_runs()}")

"""How far training is: one calm display in a terminal, else plain lines. At most 80 columns, safe for any text."""

from __future__ import annotations

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
from tiebreak.text import number_of, printable

LINE_SECONDS = 10.0  # without a terminal, a line at most this often
BAR_WIDTH = 20
ROUNDING = 1e-6  # parts of epochs that were added up may miss the total by this
MOST_COHORTS = 3  # named at once


@dataclass(frozen=True, kw_only=True)
class CohortState:
    """Runs of one cohort that are being trained: how many, and between which epochs (the one they are in)."""

    name: str
    runs: int
    first: int
    last: int
    epochs: int

    def epoch(self) -> str:
        """Where they are."""
        epoch = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"epoch {epoch} of {self.epochs}"


@dataclass(frozen=True, kw_only=True)
class TrainingState:
    """How far a study is. `share` counts what was done by what it costs, `epochs` as they are."""

    share: float
    epochs: float
    total_epochs: int
    done: int  # runs that ended as they should
    diverged: int
    failed: int
    runs: int
    cohorts: Sequence[CohortState] = ()
    rate: float = 0.0  # steps per second over all runs that are being trained

    def now(self) -> str:
        """How many runs are being trained at the moment, how fast, and which."""
        alive = number_of(sum(state.runs for state in self.cohorts), "run")
        speed = f"{steps_per_second(self.rate)} over {alive}" if self.rate > 0 else alive
        parts = [
            f"{f'{state.runs} ' if len(self.cohorts) > 1 else ''}{state.name}, {state.epoch()}"
            for state in self.cohorts[:MOST_COHORTS]
        ]
        if len(self.cohorts) > MOST_COHORTS:
            parts.append(f"and {len(self.cohorts) - MOST_COHORTS} more")
        return f"{speed}: {'; '.join(parts)}"

    def ended(self) -> str:
        """The runs that ended, and how."""
        parts = [f"{self.done} of {number_of(self.runs, 'run')} done"]
        parts += [f"{many} {what}" for many, what in ((self.diverged, "diverged"), (self.failed, "failed")) if many]
        return ", ".join(parts)

    def gone(self) -> str:
        """The share of the work that is done, and the epochs."""
        total = number_of(self.total_epochs, "epoch")
        return f"{100 * min(self.share, 1.0):.0f} %: {self.epochs:,.0f} of {total}"


def steps_per_second(rate: float) -> str:
    """A rate in words, two digits of it.

    >>> steps_per_second(41_234.5), steps_per_second(870), steps_per_second(0.73)
    ('41,000 steps/s', '870 steps/s', '0.73 steps/s')
    """
    rounded = float(f"{rate:.2g}")
    return f"{rounded:,.0f} steps/s" if rounded >= 10 else f"{rounded:g} steps/s"


class TrainingProgress:
    """Shows how far training is: live in a terminal, else plain lines every ten seconds and at the end."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._state: TrainingState | None = None
        self._started = self._printed = clock()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        """Start the clock and, in a terminal, the display."""
        self._started = self._printed = self._clock()
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
        """This is how far it is now."""
        self._state = state
        if self._live is None and self._clock() - self._printed >= LINE_SECONDS:
            self._print_lines()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(Text(printable(text)))

    def _left(self, state: TrainingState) -> str:
        seconds = self._clock() - self._started
        if state.share >= 1 - ROUNDING:
            return f"{formatting.duration(seconds)} in all"
        if state.share <= 0:
            return "starting"
        return f"about {formatting.duration(seconds * (1 - state.share) / state.share)} left"

    def _rendered(self) -> Group:
        state = self._state
        if state is None:
            return Group(Text("starting"))
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=min(state.share, 1.0), width=BAR_WIDTH)
        row.add_row(bar, Text(f"{state.gone()}, {self._left(state)}"))
        lines = [state.ended()]
        if state.share < 1 - ROUNDING:  # until the end as high as ever, or the screen would jump
            lines.append(printable(state.now()) if state.cohorts else "")
        return Group(row, *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))

    def _print_lines(self) -> None:
        self._printed = self._clock()
        state = self._state
        assert state is not None
        self.note(f"{state.gone()}, {state.ended()}, {self._left(state)}")
        if state.cohorts:
            self.note(f"  {state.now()}")

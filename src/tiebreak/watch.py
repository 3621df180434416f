"""Progress on the screen: joins the messages of training with the terminal's display."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console

from tiebreak.report.terminal import TrainingProgress
from tiebreak.train.messages import Begun, EpochDone, Message, Note, Progress, RunEnded


class Watch:
    """A listener for `api.run`. Shows nothing when there is nothing to train."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._display: TrainingProgress | None = None
        self._epochs: dict[str, float] = {}  # identity -> epochs done
        self._labels: dict[str, str] = {}
        self._lengths: dict[str, int] = {}
        self._open: set[str] = set()  # runs that have not ended

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
            self._display.__exit__(None, None, None)
            self._display = None

    def hear(self, message: Message) -> None:
        """Show what a message says."""
        if isinstance(message, Begun):
            self._begin(message)
        elif isinstance(message, Note):
            self._say(message.text)
        elif isinstance(message, Progress):
            self._reach(message.identity, message.epochs)
        elif isinstance(message, EpochDone):
            self._reach(message.checkpoint.identity, message.record.epoch)
        elif isinstance(message, RunEnded):
            identity, status = message.record.identity, message.record.status
            self._reach(identity, self._lengths[identity])
            if status != "done":
                self._say(f"{self._labels[identity]}: {status}: {message.record.reason}")
            self._open.discard(identity)
            if not self._open:
                self._close()

    def _begin(self, begun: Begun) -> None:
        self._labels, self._lengths, self._epochs = dict(begun.labels), dict(begun.epochs), dict(begun.done)
        self._open = set(begun.labels)
        if not begun.labels:
            return
        stored = f" ({begun.stored} are stored)" if begun.stored else ""
        runs = "run" if len(begun.labels) == 1 else "runs"
        self._say(f"training {len(begun.labels)} {runs}{stored}, {begun.workers} at a time")
        self._display = TrainingProgress(self._console, round(sum(self._lengths.values()) - sum(self._epochs.values())))
        self._display.__enter__()

    def _reach(self, identity: str, epochs: float) -> None:
        gained = epochs - self._epochs.get(identity, 0.0)
        self._epochs[identity] = epochs
        if self._display is not None:
            self._display.advance(self._labels[identity], gained)

    def _say(self, text: str) -> None:
        if self._display is not None:
            self._display.note(text)
        else:
            self._console.print(text, markup=False)

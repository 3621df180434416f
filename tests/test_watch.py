from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tiebreak.results.record import CheckpointRecord, EpochRecord, RunRecord, Status
from tiebreak.train.messages import Begun, EpochDone, Note, Progress, RunEnded, Stop
from tiebreak.watch import Watch


class Screen:
    """A console that is not a terminal, and what was printed on it."""

    def __init__(self, *, terminal: bool = False) -> None:
        self.file = io.StringIO()
        self.console = Console(file=self.file, width=200, force_terminal=terminal)

    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()


def begun(epochs: dict[str, int], done: dict[str, float] | None = None, stored: int = 0) -> Begun:
    labels = {identity: f"cnn-{identity} seed 0" for identity in epochs}
    return Begun(
        labels=labels, epochs=epochs, done=done or dict.fromkeys(epochs, 0), stored=stored, workers=min(2, len(epochs))
    )


def epoch(identity: str, number: int) -> EpochDone:
    return EpochDone(
        record=EpochRecord(trajectory="t", epoch=number, metrics={}, seconds={}),
        checkpoint=CheckpointRecord(identity=identity, trajectory="t", epoch=number, file="f", sha256="0"),
    )


def ended(identity: str, status: Status = "done", reason: str = "") -> RunEnded:
    return RunEnded(record=RunRecord(identity=identity, trajectory="t", status=status, epoch=1, reason=reason))


def test_nothing_is_shown_when_there_is_nothing_to_train() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({}, stored=90))
    assert screen.lines() == []


def test_a_run_from_start_to_end_is_two_plain_lines() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 2}))
        watch.hear(epoch("a", 1))
        watch.hear(epoch("a", 2))
        watch.hear(ended("a"))
    first, last = screen.lines()
    assert first == "training 1 run, 1 at a time"
    assert re.fullmatch(r"2 of 2 epochs \(100 %\), .* in all: cnn-a seed 0", last)


def test_what_is_stored_is_told_and_not_counted() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 3, "b": 3}, stored=4))
        watch.hear(epoch("b", 1))
    first, last = screen.lines()
    assert first == "training 2 runs (4 are stored), 2 at a time"
    assert last.startswith("1 of 6 epochs (17 %), about ")
    assert last.endswith("left: cnn-b seed 0")


def test_epochs_done_before_a_resume_are_not_counted_again() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 10, "b": 10}, done={"a": 7, "b": 0}))
        watch.hear(epoch("a", 8))
        watch.hear(epoch("b", 1))
    assert screen.lines()[-1].startswith("2 of 13 epochs (15 %)")


def test_a_resume_from_an_earlier_state_than_expected_still_ends_at_all_epochs() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 4}, done={"a": 3}))
        watch.hear(Note(text="state 3 is damaged; using the one before it"))
        for number in (3, 4):
            watch.hear(epoch("a", number))
        watch.hear(ended("a"))
    assert "state 3 is damaged; using the one before it" in screen.lines()
    assert screen.lines()[-1].startswith("1 of 1 epochs (100 %)")


def test_a_share_of_an_epoch_is_counted_once() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 4}))
        watch.hear(Progress(identity="a", epochs=0.4))
        watch.hear(Progress(identity="a", epochs=0.9))
        watch.hear(epoch("a", 1))
        watch.hear(Progress(identity="a", epochs=2.0))
    assert screen.lines()[-1].startswith("2 of 4 epochs (50 %)")


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_run_that_ends_badly_is_named_with_its_reason_and_ends_its_share(status: Status) -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 5, "b": 5}))
        watch.hear(epoch("a", 1))
        watch.hear(ended("a", status, "epoch 2: loss nan [bold]"))
    assert f"cnn-a seed 0: {status}: epoch 2: loss nan [bold]" in screen.lines()
    assert screen.lines()[-1].startswith("5 of 10 epochs")


def test_a_note_before_training_is_a_line_without_markup() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(Note(text="another tiebreak works in [red]runs/a[/red]; waiting"))
    assert screen.lines() == ["another tiebreak works in [red]runs/a[/red]; waiting"]


def test_what_stops_the_study_is_left_to_its_error() -> None:
    screen = Screen()
    with Watch(screen.console) as watch:
        watch.hear(Stop(text="no space left"))
    assert screen.lines() == []


def test_an_error_while_training_leaves_the_last_state_and_passes_through() -> None:
    screen = Screen()

    def train() -> None:
        with Watch(screen.console) as watch:
            watch.hear(begun({"a": 2}))
            watch.hear(epoch("a", 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert screen.lines()[-1].startswith("1 of 2 epochs")


def test_in_a_terminal_a_bar_counts_the_epochs() -> None:
    screen = Screen(terminal=True)
    with Watch(screen.console) as watch:
        watch.hear(begun({"a": 2}))
        watch.hear(epoch("a", 1))
        watch.hear(epoch("a", 2))
    assert "2 of 2 epochs" in screen.file.getvalue()

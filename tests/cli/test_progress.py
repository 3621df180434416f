from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tiebreak.cli.progress import MANY_RUNS, REFRESH_SECONDS, ProgressListener
from tiebreak.drive.messages import Abort, EpochDone, Note, PendingRun, Progress, RunEnded, TrainingStarted
from tiebreak.report.terminal.training_display import TrainingProgress
from tiebreak.results.record import EpochRecord, RunRecord, Status, Strategy


class Screen:
    """A console that is not a terminal, and what was printed on it."""

    def __init__(self, *, terminal: bool = False) -> None:
        self.file = io.StringIO()
        self.console = Console(file=self.file, width=200, force_terminal=terminal)

    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()

    def last(self) -> str:
        """How far it was at the end, without the line that says what is being trained."""
        return [line for line in self.lines() if not line.startswith("  ")][-1]


def starting(
    identity: str, epochs: int, *, done: int = 0, strategy: Strategy = "loop", cost: float = 1.0, path: str = ""
) -> PendingRun:
    return PendingRun(
        label=f"cnn-{identity} seed 0",
        cohort=f"cnn-{identity[0]}",
        trajectory=path or f"path of {identity}",
        epochs=epochs,
        done=done,
        strategy=strategy,
        cost=cost,
    )


def begun(
    epochs: dict[str, int], done: dict[str, int] | None = None, stored: int = 0, strategy: Strategy = "loop"
) -> TrainingStarted:
    runs = {
        identity: starting(identity, count, done=(done or {}).get(identity, 0), strategy=strategy)
        for identity, count in epochs.items()
    }
    return TrainingStarted(runs=runs, steps=100, stored=stored, workers=min(2, len(epochs)))


def epoch(number: int, *identities: str, seconds: float = 0.5) -> EpochDone:
    """An epoch of runs that are trained together; `seconds` of training for all of them."""
    share = {"train": seconds / len(identities)}
    records = [
        EpochRecord(trajectory=f"path of {identity}", epoch=number, metrics={}, seconds=share)
        for identity in identities
    ]
    return EpochDone(records=tuple(records), checkpoints=())


def ended(identity: str, status: Status = "done", reason: str = "") -> RunEnded:
    return RunEnded(record=RunRecord(identity=identity, trajectory="t", status=status, epoch=1, reason=reason))


def test_nothing_is_shown_when_there_is_nothing_to_train() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({}, stored=90))
    assert screen.lines() == []


def test_a_run_from_start_to_end_is_two_plain_lines() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 2}))
        watch.on_message(epoch(1, "a"))
        watch.on_message(epoch(2, "a"))
        watch.on_message(ended("a"))
    first, last = screen.lines()
    assert first == "training 1 run"
    assert re.fullmatch(r"100 %: 2 of 2 epochs, 1 of 1 run done, .* in all", last)


def test_what_is_stored_is_told_and_not_counted() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 3, "b": 3}, stored=4))
        watch.on_message(epoch(1, "b"))
    first, last, now = screen.lines()
    assert first == "training 2 runs (4 are stored), 2 at a time"
    assert last.startswith("16 %: 1 of 6 epochs, 0 of 2 runs done, ")
    assert now == "  200 steps/s over 1 run: cnn-b, epoch 2 of 3"


@pytest.mark.parametrize(
    ("strategies", "text"),
    [
        (("fused", "fused"), "training 2 runs, fused, in 2 processes"),
        (("fused", "loop"), "training 2 runs, 1 of them fused, in 2 processes"),
    ],
)
def test_it_is_said_how_many_are_fused(strategies: tuple[Strategy, Strategy], text: str) -> None:
    screen = Screen()
    runs = {name: starting(name, 1, strategy=how) for name, how in zip("ab", strategies, strict=True)}
    with ProgressListener(screen.console) as watch:
        watch.on_message(TrainingStarted(runs=runs, steps=1, stored=0, workers=2))
    assert screen.lines() == [text]


def test_a_cohort_goes_on_together_and_its_rate_is_that_of_all_its_runs() -> None:
    screen, names = Screen(), [f"a{number}" for number in range(4)]
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun(dict.fromkeys(names, 10), strategy="fused"))
        watch.on_message(Progress(identities=tuple(names), epochs=0.5, rate=40_000.0))
        watch.on_message(epoch(1, *names, seconds=0.01))
        watch.on_message(ended("a0", "diverged", "epoch 2: train loss nan"))
    assert screen.lines()[-3:] == [
        "cnn-a0 seed 0: diverged: epoch 2: train loss nan",
        screen.last(),
        "  30,000 steps/s over 3 runs: cnn-a, epoch 2 of 10",
    ]
    assert screen.last().startswith("32 %: 13 of 40 epochs, 0 of 4 runs done, 1 diverged, ")


def test_runs_at_different_epochs_and_of_several_cohorts_are_told_apart() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a0": 9, "a1": 9, "b0": 9}))
        watch.on_message(Progress(identities=("a0",), epochs=2.5, rate=100.0))
        watch.on_message(Progress(identities=("a1",), epochs=6.1, rate=150.0))
        watch.on_message(Progress(identities=("b0",), epochs=0.1, rate=50.0))
    assert screen.lines()[-1] == "  300 steps/s over 3 runs: 2 cnn-a, epoch 3 to 7 of 9; 1 cnn-b, epoch 1 of 9"


def test_the_share_counts_what_an_epoch_costs() -> None:
    screen = Screen()
    runs = {"a": starting("a", 10, cost=0.1), "b": starting("b", 10, cost=9.9)}
    with ProgressListener(screen.console) as watch:
        watch.on_message(TrainingStarted(runs=runs, steps=1, stored=0, workers=1))
        watch.on_message(epoch(10, "a"))
    assert screen.last().startswith("1 %: 10 of 20 epochs")


def test_of_two_runs_on_one_path_the_one_that_is_being_trained_goes_on() -> None:
    screen = Screen()
    runs = {
        "a-short": starting("a-short", 2, path="path of both"),
        "a-long": starting("a-long", 4, path="path of both"),
    }
    with ProgressListener(screen.console) as watch:
        watch.on_message(TrainingStarted(runs=runs, steps=1, stored=0, workers=1))
        for number in (1, 2):
            watch.on_message(epoch(number, "both"))
        assert sorted(watch._progress.epochs.values()) == [0, 2]
        watch.on_message(ended("a-short"))
        for number in (1, 2, 3, 4):
            watch.on_message(epoch(number, "both"))
        watch.on_message(ended("a-long"))
    assert screen.last().startswith("100 %: 6 of 6 epochs, 2 of 2 runs done")


def test_epochs_done_before_a_resume_are_not_counted_again() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 10, "b": 10}, done={"a": 7, "b": 0}))
        watch.on_message(epoch(8, "a"))
        watch.on_message(epoch(1, "b"))
    assert screen.last().startswith("15 %: 2 of 13 epochs")


def test_a_resume_from_an_earlier_state_than_expected_still_ends_at_all_epochs() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 4}, done={"a": 3}))
        watch.on_message(Note(text="state 3 is damaged; using the one before it"))
        for number in (3, 4):
            watch.on_message(epoch(number, "a"))
        watch.on_message(ended("a"))
    assert "state 3 is damaged; using the one before it" in screen.lines()
    assert screen.last().startswith("100 %: 1 of 1 epoch,")


def test_a_share_of_an_epoch_is_counted_once() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 4}))
        watch.on_message(Progress(identities=("a",), epochs=0.4, rate=10.0))
        watch.on_message(Progress(identities=("a",), epochs=0.9, rate=10.0))
        watch.on_message(epoch(1, "a"))
        watch.on_message(Progress(identities=("a",), epochs=2.0, rate=10.0))
    assert screen.last().startswith("50 %: 2 of 4 epochs")


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_run_that_ends_badly_is_named_with_its_reason_and_ends_its_share(status: Status) -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 5, "b": 5}))
        watch.on_message(epoch(1, "a"))
        watch.on_message(ended("a", status, "epoch 2: loss nan [bold]"))
    assert f"cnn-a seed 0: {status}: epoch 2: loss nan [bold]" in screen.lines()
    assert screen.last().startswith(f"50 %: 5 of 10 epochs, 0 of 2 runs done, 1 {status}")


def test_a_note_before_training_is_a_line_without_markup() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(Note(text="another tiebreak works in [red]runs/a[/red]; waiting"))
    assert screen.lines() == ["another tiebreak works in [red]runs/a[/red]; waiting"]


def test_what_stops_the_study_is_left_to_its_error() -> None:
    screen = Screen()
    with ProgressListener(screen.console) as watch:
        watch.on_message(Abort(text="no space left"))
    assert screen.lines() == []


def test_an_error_while_training_leaves_the_last_state_and_passes_through() -> None:
    screen = Screen()

    def train() -> None:
        with ProgressListener(screen.console) as watch:
            watch.on_message(begun({"a": 2}))
            watch.on_message(epoch(1, "a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert screen.last().startswith("50 %: 1 of 2 epochs")


def test_in_a_terminal_a_bar_counts_the_epochs() -> None:
    screen = Screen(terminal=True)
    with ProgressListener(screen.console) as watch:
        watch.on_message(begun({"a": 2}))
        watch.on_message(epoch(1, "a"))
        watch.on_message(epoch(2, "a"))
    assert "2 of 2 epochs" in screen.file.getvalue()


def test_the_state_of_many_runs_is_not_summed_up_for_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    now, shown = [0.0], list[float]()
    monkeypatch.setattr(TrainingProgress, "show", lambda self, state: shown.append(state.epochs))
    runs = {f"{number}": 2 for number in range(MANY_RUNS + 1)}
    with ProgressListener(Screen().console, clock=lambda: now[0]) as watch:
        watch.on_message(begun(runs))
        for number in range(50):
            watch.on_message(epoch(1, f"{number}"))
        now[0] += REFRESH_SECONDS
        watch.on_message(epoch(1, "50"))
        watch.on_message(epoch(1, "51"))
    assert shown == [1, 51, 52]  # the first, the next that is due, the last

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from rich.console import Console

from tiebreak.report.terminal.training_display import CohortState, TrainingProgress, TrainingState

POOL = CohortState(name="cnn-pool", runs=30, first=7, last=7, epochs=15)
STRIDED = CohortState(name="cnn-strided", runs=30, first=2, last=6, epochs=15)
HALF = TrainingState(
    share=0.5,
    epochs=612.3,
    total_epochs=1350,
    done=29,
    diverged=1,
    failed=0,
    runs=90,
    cohorts=(POOL, STRIDED),
    rate=41_234.5,
)
END = dataclasses.replace(HALF, share=1.0, epochs=1350.0, done=89, cohorts=(), rate=0.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def plain(width: int = 80) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=width, force_terminal=False), written


def live(width: int = 80) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=width, force_terminal=True), written


def shown(written: io.StringIO) -> list[str]:
    """What a terminal was given, without the sequences that move its cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.getvalue()).replace("\r", "").splitlines()


def test_without_a_terminal_progress_is_plain_lines_every_ten_seconds_and_at_the_end() -> None:
    clock, (console, written) = Clock(), plain()
    with TrainingProgress(console, clock) as progress:
        for second in range(1, 41):
            clock.now += 1
            progress.show(dataclasses.replace(HALF, share=second / 80, epochs=second))
        progress.note("cnn-pool seed 3 diverged")
        progress.show(END)
    found = written.getvalue().splitlines()
    assert re.match("12 %: 10 of 1,350 epochs.*29 of 90 runs.*1 diverged.*1 min 10 s", found[0])
    assert re.match("  41,000 steps/s over 60 runs: 30 cnn-pool, epoch 7 of 15", found[1])
    assert sum(line.startswith("  ") for line in found) == 4
    assert found[-2] == "cnn-pool seed 3 diverged"
    assert re.match(r"100 %: 1,350 of 1,350 epochs.*89 of 90 runs.*40\.0 s", found[-1])


def test_nothing_is_called_complete_before_it_is() -> None:
    clock, (console, written) = Clock(), plain()
    with TrainingProgress(console, clock) as progress:
        progress.show(dataclasses.replace(END, done=80))  # trained, and not all tested
    assert re.match("100 %: .*80 of 90 runs done, .*testing$", written.getvalue().splitlines()[0])
    almost = dataclasses.replace(HALF, share=0.998, epochs=1349.8)
    assert almost.progress() == "99 %: 1,349 of 1,350 epochs"


def test_the_time_left_does_not_count_the_start_of_the_processes() -> None:
    clock, (console, written) = Clock(), plain()
    with TrainingProgress(console, clock) as progress:
        clock.now += 60  # a restart: processes start, checkpoints are read
        progress.show(dataclasses.replace(HALF, share=0.001))
        assert "starting" in written.getvalue()
        clock.now += 10
        progress.show(dataclasses.replace(HALF, share=0.101))
        assert "about 1 min 30 s left" in written.getvalue()


def test_in_a_terminal_progress_is_three_calm_lines() -> None:
    clock, (console, written) = Clock(), live()
    with TrainingProgress(console, clock) as progress:
        progress.show(dataclasses.replace(HALF, share=0.1))
        clock.now += 10
        progress.show(HALF)
        progress.note("kept [b]as it is[/b]")
    found = shown(written)
    assert max(map(len, found)) <= 80
    assert any("50 %: 612 of 1,350 epochs, about " in line for line in found)
    assert "29 of 90 runs done, 1 diverged" in found
    assert any(line.startswith("41,000 steps/s over 60 runs: 30 cnn-pool, epoch 7 of 15; 30 cnn-str") for line in found)
    assert "kept [b]as it is[/b]" in found


def test_between_two_cohorts_the_display_keeps_its_height() -> None:
    heights = []
    for state in (HALF, dataclasses.replace(HALF, cohorts=(), rate=0.0)):
        console, written = live()
        with TrainingProgress(console) as progress:
            progress.show(state)
            written.truncate(0)
            progress._live.refresh()  # type: ignore[union-attr]
            heights.append(written.getvalue().count("\n"))
    assert heights[0] == heights[1]


def test_one_cohort_needs_no_count_of_its_own() -> None:
    alone = dataclasses.replace(HALF, cohorts=(POOL,))
    assert alone.current_runs() == "41,000 steps/s over 30 runs: cnn-pool, epoch 7 of 15"
    one = dataclasses.replace(HALF, cohorts=(dataclasses.replace(STRIDED, runs=1),), rate=0.0)
    assert one.current_runs() == "1 run: cnn-strided, epoch 2 to 6 of 15"


def test_many_cohorts_are_not_all_named() -> None:
    many = dataclasses.replace(HALF, cohorts=(POOL,) * 5)
    assert many.current_runs().count("cnn-pool") == 3
    assert many.current_runs().endswith("; and 2 more")


def test_how_runs_ended_is_told_only_where_there_is_something_to_tell() -> None:
    assert dataclasses.replace(HALF, diverged=0).ended_runs() == "29 of 90 runs done"
    assert dataclasses.replace(HALF, failed=2).ended_runs() == "29 of 90 runs done, 1 diverged, 2 failed"


@pytest.mark.parametrize("console", [plain, live])
def test_text_from_a_study_cannot_drive_the_terminal(console: object) -> None:
    assert callable(console)
    screen, written = console()
    strange = dataclasses.replace(HALF, cohorts=(dataclasses.replace(POOL, name="[red]\x1b[31mnet"),))
    with TrainingProgress(screen) as progress:
        progress.show(strange)
    assert r"[red]\x1b[31mnet" in written.getvalue()


def test_progress_of_nothing_prints_nothing() -> None:
    console, written = plain()
    with TrainingProgress(console):
        pass
    assert written.getvalue() == ""


def test_before_anything_is_done_there_is_no_time_left_to_tell() -> None:
    console, written = plain()
    with TrainingProgress(console) as progress:
        progress.show(dataclasses.replace(HALF, share=0.0, epochs=0.0, cohorts=()))
    assert re.fullmatch("0 %: 0 of 1,350 epochs.*starting\n", written.getvalue())


def test_an_error_inside_still_leaves_the_last_state() -> None:
    clock, (console, written) = Clock(), plain()
    progress = TrainingProgress(console, clock)

    def interrupted() -> None:
        with progress:
            progress.show(dataclasses.replace(HALF, cohorts=()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert written.getvalue().startswith("50 %: 612 of 1,350 epochs")

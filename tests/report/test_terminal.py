from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import sample_report
from rich.console import Console

from tiebreak.report import terminal

REPORT = Path("runs/my pooling/report.html")


def plain(width: int = 80) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=width, force_terminal=False), written


def lines(written: io.StringIO) -> list[str]:
    found = written.getvalue().splitlines()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", written.getvalue())
    return found


@pytest.mark.parametrize(
    "make", [sample_report.complete, sample_report.partial, sample_report.empty, sample_report.long_names]
)
def test_a_verdict_fits_80_columns_and_ends_with_the_report(make: object) -> None:
    assert callable(make)
    console, written = plain()
    verdict = make().verdict
    terminal.print_verdict(console, verdict, REPORT)
    found = lines(written)
    assert max(len(line) for line in found if "tiebreak run" not in line) <= 80
    assert found[-1] == f"report: {REPORT}"
    assert " ".join(verdict.answer.split()) in " ".join(written.getvalue().split())
    assert all(name in written.getvalue() for name in ("pool", "strided", "unpadded"))


def test_an_undecided_verdict_says_what_to_type() -> None:
    console, written = plain()
    terminal.print_verdict(console, sample_report.partial().verdict, REPORT)
    assert "pool vs strided: needs about 4 more seeds" in written.getvalue()
    assert "  tiebreak run 'runs/my pooling/study.toml' --out 'runs/my pooling' --seeds 10" in lines(written)
    assert "not complete: 80 of 90 planned runs finished" in written.getvalue()
    console, written = plain()
    terminal.print_verdict(console, sample_report.partial().verdict, None)
    assert "  tiebreak run pooling --seeds 10" in lines(written)
    assert "report:" not in written.getvalue()


def test_a_decided_verdict_asks_for_nothing() -> None:
    console, written = plain()
    terminal.print_verdict(console, sample_report.complete().verdict, None)
    assert "tiebreak run" not in written.getvalue()


def test_colour_only_adds_to_the_words() -> None:
    verdict = sample_report.complete().verdict
    console, written = plain()
    terminal.print_verdict(console, verdict, REPORT)
    coloured = io.StringIO()
    terminal.print_verdict(
        Console(file=coloured, width=80, force_terminal=True, color_system="standard"), verdict, REPORT
    )
    assert "\x1b[1;32m" in coloured.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == written.getvalue()


def test_settings_of_one_question_stand_below_one_heading_and_interactions_have_no_winner() -> None:
    console, written = plain()
    terminal.print_verdict(console, sample_report.complete().verdict, None)
    found = lines(written)
    start = found.index("best learning rate: pool at lr=0.01 against each other setting")
    assert found[start + 1] == "  against lr=0.1: lr=0.1 is better"
    assert found[start + 2].startswith("    difference -0.0")
    assert found[start + 3] == "  against lr=0.001: lr=0.01 is better"
    assert found[start + 5] == "robustness: undecided"
    larger = sample_report.complete().verdict.comparisons[-1].model_copy(update={"verdict": "a", "primary": True})
    console, written = plain()
    verdict = sample_report.complete().verdict.model_copy(update={"comparisons": (larger,), "answer": ""})
    terminal.print_verdict(console, verdict, None)
    assert "robustness: larger for pool-moved − strided-moved" in lines(written)
    assert "better" not in written.getvalue().replace(verdict.question, "")


def test_settings_of_two_hyper_parameters_stand_below_the_table() -> None:
    verdict = sample_report.complete().verdict
    settings = [{"lr": 0.1, "dropout": 0.7}, *[{"lr": 0.1, "dropout": 0.25}] * 4]
    arms = tuple(
        arm.model_copy(update={"setting": setting}) for arm, setting in zip(verdict.designs, settings, strict=True)
    )
    console, written = plain()
    terminal.print_verdict(console, verdict.model_copy(update={"designs": arms}), None)
    found = lines(written)
    head = next(line for line in found if line.startswith("arm"))
    assert "setting" not in head
    first = found.index(head) + 1
    assert [line.split()[0] for line in found[first : first + 5]] == [arm.name for arm in arms]
    assert found[first + 5] == "at dropout=0.7 lr=0.1: pool"
    assert found[first + 6] == "at dropout=0.25 lr=0.1: strided, unpadded, pool-moved and strided-moved"


def test_text_from_data_is_neither_markup_nor_a_control_sequence() -> None:
    verdict = sample_report.complete().verdict.model_copy(
        update={"answer": "[red]no[/red] \x1b[31m", "warnings": ("[/x]\r",)}
    )
    console, written = plain()
    terminal.print_verdict(console, verdict, None)
    assert "[red]no[/red]" in written.getvalue()
    assert "warning: [/x]" in "\n".join(lines(written))


def test_the_plan_says_what_would_be_trained_and_for_how_long() -> None:
    evidence = sample_report.complete()
    console, written = plain()
    terminal.print_plan(console, evidence.study, evidence.plan, {"pool": 100.0, "strided": 90.0})
    shown = written.getvalue()
    for expected in ("90 runs in all", "225,612", "1 min 40 s", "NOT equal: parameters", "time: 3 min 10 s", "unknown"):
        assert expected in shown
    assert max(map(len, lines(written))) <= 80
    console, written = plain()
    terminal.print_plan(console, evidence.study, evidence.plan, None)
    assert "predicted" not in written.getvalue()


def test_the_status_counts_every_run() -> None:
    evidence = sample_report.partial()
    console, written = plain()
    terminal.print_status(console, evidence.plan, evidence.records)
    found = [line.split() for line in lines(written)]
    assert ["strided", "lr=0.1", "5", "of", "10", "1", "1", "3", "21", "of", "30"] in found
    assert ["74", "of", "90", "runs", "done"] in found
    assert len(found) == 17


def test_studies_are_listed_with_question_data_and_time() -> None:
    console, written = plain()
    terminal.print_studies(console, [("pooling", "Which?", "mnist5k", "3 min"), ("other", "What?", "mnist", "")])
    assert lines(written) == ["pooling  Which?", "  data mnist5k; 3 min", "", "other  What?", "  data mnist"]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_progress_is_a_line_every_ten_seconds_and_at_the_end() -> None:
    clock, (console, written) = Clock(), plain()
    with terminal.TrainingProgress(console, 40, clock) as progress:
        for _ in range(40):
            clock.now += 1
            progress.advance("pool: 10 runs", 1)
        progress.note("pool seed 3 diverged")
    found = lines(written)
    assert found[0] == "10 of 40 epochs (25 %), about 30.0 s left: pool: 10 runs"
    assert len(found) == 6
    assert found[-2:] == ["pool seed 3 diverged", "40 of 40 epochs (100 %), 40.0 s in all: pool: 10 runs"]


@pytest.mark.parametrize("parts", [10, 30, 70])
def test_parts_of_epochs_that_miss_the_total_by_rounding_are_the_end(parts: int) -> None:
    clock, (console, written) = Clock(), plain()
    with terminal.TrainingProgress(console, 7, clock) as progress:
        for _ in range(parts):
            progress.advance("pool", 7 / parts - 1e-9)
        clock.now += 5
    assert lines(written) == ["7 of 7 epochs (100 %), 5.0 s in all: pool"]


def test_progress_of_nothing_prints_nothing() -> None:
    console, written = plain()
    with terminal.TrainingProgress(console, 0):
        pass
    assert written.getvalue() == ""


def test_in_a_terminal_progress_is_a_bar_with_the_time_left() -> None:
    written = io.StringIO()
    console = Console(file=written, width=80, force_terminal=True)
    with terminal.TrainingProgress(console, 30) as progress:
        progress.advance("[b]pool[/b]", 15)
        progress.note("kept")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.getvalue())
    assert "15 of 30 epochs" in shown
    assert "left" in shown
    assert "[b]pool[/b]" in shown
    assert "kept" in shown


def test_an_error_inside_still_leaves_the_last_state() -> None:
    clock, (console, written) = Clock(), plain()
    progress = terminal.TrainingProgress(console, 40, clock)

    def interrupted() -> None:
        with progress:
            progress.advance("pool", 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert lines(written) == ["10 of 40 epochs (25 %), about 0.0 s left: pool"]

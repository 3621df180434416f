from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from support import sample_report
from tiebreak.plan.runs import Difference
from tiebreak.report.terminal import summaries
from tiebreak.verdict.model import Edge

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
    summaries.print_verdict(console, verdict, REPORT)
    found = lines(written)
    assert max(len(line) for line in found if "tiebreak run" not in line) <= 80
    assert found[-1] == f"report: {REPORT}"
    assert " ".join(verdict.answer.split()) in " ".join(written.getvalue().split())
    assert all(name in written.getvalue() for name in ("pool", "strided", "unpadded"))


def test_an_undecided_verdict_says_what_to_type() -> None:
    console, written = plain()
    summaries.print_verdict(console, sample_report.partial().verdict, REPORT)
    assert re.search("pool vs strided: .*4 more seeds", written.getvalue())
    assert "  tiebreak run 'runs/my pooling/study.toml' --out 'runs/my pooling'" in lines(written)  # 10 are planned
    assert "80 of 90 planned runs" in written.getvalue()
    console, written = plain()
    summaries.print_verdict(console, sample_report.empty().verdict, None, Path("runs/x"))
    assert "  tiebreak run runs/x/study.toml --out runs/x" in lines(written)  # not the full study in another folder
    assert not any(part in written.getvalue() for part in ("report:", "more seed", "fewer than"))
    assert re.search(r"^pool +missing", written.getvalue(), re.MULTILINE)  # no setting is chosen yet


def test_a_decided_verdict_asks_for_nothing() -> None:
    console, written = plain()
    summaries.print_verdict(console, sample_report.complete().verdict, None)
    assert "--seeds" not in written.getvalue()


def test_the_best_setting_at_the_edge_of_the_grid_comes_with_the_command_that_widens_it() -> None:
    console, written = plain()
    summaries.print_verdict(console, sample_report.complete().verdict, Path("runs/x/report.html"))
    shown = lines(written)
    assert any("largest lr tried (0.1)" in line for line in shown)
    assert "  tiebreak run runs/x/study.toml --out runs/x --grid lr=0.3,0.1,0.01,0.001" in shown


def test_grids_of_arms_are_widened_in_the_study_file() -> None:
    verdict = sample_report.complete().verdict
    first, second, *_ = verdict.designs
    grid = Difference(kind="grid", name="lr", first="0.1, 0.01", own="0.003, 0.001")
    edge = Edge(name="lr", value=0.003, end="largest", wider=(0.01, 0.003, 0.001))
    arms = (first, second.model_copy(update={"at_edge": (edge,), "differences": (grid,)}))
    console, written = plain()
    summaries.print_verdict(console, verdict.model_copy(update={"designs": arms}), REPORT)
    said = " ".join(written.getvalue().split())
    assert "--grid" not in said  # would widen one arm only
    assert all(part in said for part in ("strided lr = [0.01, 0.003, 0.001]", "pool lr = [0.3, 0.1, "))


def test_colour_only_adds_to_the_words() -> None:
    verdict = sample_report.complete().verdict
    console, written = plain()
    summaries.print_verdict(console, verdict, REPORT)
    coloured = io.StringIO()
    summaries.print_verdict(
        Console(file=coloured, width=80, force_terminal=True, color_system="standard"), verdict, REPORT
    )
    assert "\x1b[1;32m" in coloured.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == written.getvalue()


def test_settings_of_one_question_stand_below_one_heading_and_interactions_have_no_winner() -> None:
    console, written = plain()
    summaries.print_verdict(console, sample_report.complete().verdict, None)
    found = [line for line in lines(written) if "test examples" not in line]
    start = next(at for at, line in enumerate(found) if line.startswith("best learning rate: pool at lr=0.01"))
    assert found[start + 1] == "  against lr=0.1: lr=0.1 is better"
    assert found[start + 2].startswith("    difference -0.0")
    assert found[start + 3] == "  against lr=0.001: lr=0.01 is better"
    assert found[start + 5] == "robustness: undecided"
    larger = sample_report.complete().verdict.comparisons[-1].model_copy(update={"verdict": "a", "primary": True})
    console, written = plain()
    verdict = sample_report.complete().verdict.model_copy(update={"comparisons": (larger,), "answer": ""})
    summaries.print_verdict(console, verdict, None)
    assert "robustness: larger for pool-moved − strided-moved" in lines(written)
    assert "better" not in written.getvalue().replace(verdict.question, "")


def test_settings_of_two_hyper_parameters_stand_below_the_table() -> None:
    verdict = sample_report.complete().verdict
    settings = [{"lr": 0.1, "dropout": 0.7}, *[{"lr": 0.1, "dropout": 0.25}] * 4]
    arms = tuple(
        arm.model_copy(update={"setting": setting}) for arm, setting in zip(verdict.designs, settings, strict=True)
    )
    console, written = plain()
    summaries.print_verdict(console, verdict.model_copy(update={"designs": arms}), None)
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
    summaries.print_verdict(console, verdict, None)
    assert "[red]no[/red]" in written.getvalue()
    assert "warning: [/x]" in "\n".join(lines(written))


def test_the_plan_says_what_would_be_trained_and_for_how_long() -> None:
    evidence = sample_report.complete()
    console, written = plain()
    summaries.print_plan(console, evidence.study, evidence.plan)
    summaries.print_prediction(console, 190.0, "6 steps were timed")
    shown = written.getvalue()
    for expected in ("90 runs in all", "225,612", "NOT equal: parameters", "time: 3 min 10 s", "6 steps", "unknown"):
        assert expected in shown
    assert max(map(len, lines(written))) <= 80


def test_the_runs_of_a_plan_add_up_where_arms_share_them() -> None:
    evidence = sample_report.complete()
    console, written = plain()
    summaries.print_plan(console, evidence.study, evidence.plan)
    rows = {line.split()[0]: line.split() for line in lines(written) if "cnn-" in line and "against" not in line}
    assert [rows[name][2] for name in ("pool", "strided", "unpadded")] == ["30", "30", "30"]
    assert rows["pool-moved"][2:4] == ["of", "pool"]


def test_every_arm_is_told_by_what_makes_it_different() -> None:
    evidence = sample_report.complete()
    for shows_plan in (True, False):
        console, written = plain()
        if shows_plan:
            summaries.print_plan(console, evidence.study, evidence.plan)
        else:
            summaries.print_verdict(console, evidence.verdict, None)
        shown = " ".join(written.getvalue().split())
        assert "pool-moved against pool: tested with disturbed=True instead of False" in shown
        assert "strided against pool: design cnn-strided instead of cnn-pool" in shown


def test_studies_are_listed_with_question_data_and_time() -> None:
    console, written = plain()
    summaries.print_studies(console, [("pooling", "Which?", "mnist5k", "3 min"), ("other", "What?", "mnist", "")])
    assert lines(written) == ["pooling  Which?", "  data mnist5k; 3 min", "", "other  What?", "  data mnist"]


def cohort(name: str, at_once: int, cannot_fuse: str = "") -> summaries.CohortRow:
    return summaries.CohortRow(
        name=name, runs=30, parameters=225_618, at_once=at_once, memory=at_once * 2.5e6, cannot_fuse=cannot_fuse
    )


def test_little_memory_is_written_in_a_smaller_unit() -> None:
    console, written = plain()
    summaries.print_cohorts(console, [dataclasses.replace(cohort("tiny", 3), memory=480.0)], 3.1e6)
    assert "0.48 kB" in written.getvalue()
    assert "3.1 MB" in written.getvalue()


def test_the_plan_says_which_runs_can_be_fused_and_which_cannot_and_why() -> None:
    console, written = plain()
    reason = "it decides by values of a tensor (`if`, `.item()`), which differ from run to run"
    summaries.print_cohorts(console, [cohort("cnn-pool", 15), cohort("[b]mine[/b]", 1, reason)], 1.25e9)
    found, shown = lines(written), " ".join(written.getvalue().split())
    assert max(map(len, found)) <= 80
    assert "cnn-pool 30 225,618 15 38 MB" in shown
    assert "[b]mine[/b] 30 225,618 1 2.5 MB" in shown
    assert f"[b]mine[/b]: its runs cannot be fused and are trained one after the other: {reason}" in shown
    assert "cnn-pool: its runs" not in shown
    assert "predicted memory: 1.2 GB" in shown


def test_the_interval_over_seeds_and_examples_stands_below_that_over_seeds() -> None:
    verdict = sample_report.complete().verdict
    item = verdict.primary.model_copy(update={"crossed_low": -0.0123, "crossed_high": 0.0456})
    console, written = plain()
    summaries.print_verdict(console, verdict.model_copy(update={"comparisons": (item,)}), None)
    assert "  over seeds and test examples together: -0.012 to +0.046" in lines(written)

from __future__ import annotations

import dataclasses
import io
import re

from rich.console import Console

from support import hand_made, sample_report
from tiebreak.report.terminal.status_table import print_status
from tiebreak.results.record import Choice, TrainingState


def plain() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=80, color_system=None), written


def test_the_status_counts_every_run() -> None:
    evidence = sample_report.partial()
    console, written = plain()
    print_status(console, evidence.plan, evidence.records.state)
    found = [line.split() for line in written.getvalue().splitlines()]
    assert ["strided", "lr=0.1", "5", "of", "10", "1", "1", "3", "21", "of", "30"] in found
    assert ["74", "of", "90", "runs", "done"] in found
    assert len(found) == 17


def test_the_status_says_how_cohorts_are_trained() -> None:
    evidence = sample_report.partial()
    (first, *_) = evidence.plan.runs.values()
    choice = Choice(
        cohort=first.cohort, device="cpu", strategy="fused", threads=1, runs=30, loop_ms=0.88, fused_ms=0.42, fits=30
    )
    records = dataclasses.replace(evidence.records, choices={(first.cohort, "cpu"): choice})
    console, written = plain()
    print_status(console, evidence.plan, records.state)
    shown = " ".join(written.getvalue().split())
    assert re.search(rf"{first.design}: fused .*0\.42 ms.* 0\.88 ms", shown)


def test_above_a_hundred_lines_an_arm_has_one() -> None:
    study = hand_made.study(seeds=2, grid={"lr": [0.001 * (1 + number) for number in range(60)]})
    plan = hand_made.plan(study)
    console, written = plain()
    print_status(console, plan, TrainingState(runs={}, epochs={}))
    found = [line.split() for line in written.getvalue().splitlines()]
    assert ["pool", "60", "settings", "0", "of", "120", "-", "-", "120", "0", "of", "240"] in found
    assert len(found) == 4

from __future__ import annotations

import io
import json
from datetime import datetime
from pathlib import Path

from rich.console import Console

from support import sample_report
from tiebreak.report.terminal.study_list import print_list, to_json
from tiebreak.verdict.study_folders import StudyFolder

WHEN = datetime(2026, 11, 16, 7, 30)
VERDICT = sample_report.complete().verdict
DONE = StudyFolder(
    path=Path("runs/mine"),
    study=VERDICT.study,
    question=VERDICT.question,
    planned=90,
    ended=90,
    verdict=VERDICT,
    size=143_000_000,
    changed=WHEN,
)
STOPPED = StudyFolder(
    path=Path("runs/half"), study="half", question="Which?", planned=9, ended=4, size=1_000, changed=WHEN
)
BROKEN = StudyFolder(path=Path("runs/x\x1b[31m"), problem="plan.json: damaged", size=20, changed=WHEN)


def printed(*found: StudyFolder) -> str:
    file = io.StringIO()
    print_list(Console(file=file, width=80, highlight=False), found)
    return file.getvalue()


def test_every_study_stands_with_question_answer_runs_size_and_date() -> None:
    text = " ".join(printed(DONE, STOPPED).split())
    parts = ["runs/mine", VERDICT.question, VERDICT.answer, "90 of 90 runs", "143 MB", "2026-11-16 07:30"]
    parts += ["4 of 9 runs", "tiebreak run", "2 studies"]
    assert [part for part in parts if " ".join(part.split()) not in text] == []


def test_a_damaged_folder_stands_there_with_its_problem_and_cannot_drive_the_terminal() -> None:
    text = printed(BROKEN)
    assert "plan.json: damaged" in text
    assert "\x1b" not in text


def test_json_has_the_same() -> None:
    done, stopped, broken = json.loads(to_json([DONE, STOPPED, BROKEN]))
    assert (done["answer"], done["bytes"], done["folder"]) == (VERDICT.answer, 143_000_000, "runs/mine")
    assert (stopped["answer"], stopped["ended"], stopped["problem"]) == (None, 4, None)
    assert broken["problem"] == "plan.json: damaged"

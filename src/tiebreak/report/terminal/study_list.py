"""The output of `tiebreak list`: every study of a folder with its question, its answer and its size."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tiebreak.report import formatting
from tiebreak.text import number_of, printable
from tiebreak.verdict.study_folders import StudyFolder

COLOURS = {"a": "bold green", "b": "bold green", "same": "bold cyan", "undecided": "bold yellow"}


def print_list(console: Console, found: Sequence[StudyFolder]) -> None:
    """A paragraph for each study, and the total."""
    for each in found:
        facts = [f"{each.ended} of {number_of(each.planned, 'run')}", formatting.size(each.size), _date(each)]
        name = [] if each.study == each.path.name or not each.study else [f"study {each.study}"]
        line = " · ".join([*name, *facts])
        console.print(Text.assemble((printable(each.path), "bold"), f"  {printable(line)}"), soft_wrap=True)
        if each.question:
            console.print(Text(f"  {printable(each.question)}"))
        style = COLOURS[each.verdict.primary.verdict] if each.verdict is not None else "yellow"
        console.print(Text(f"  {printable(_answer(each))}", style=style))
        console.print()
    total = formatting.size(sum(each.size for each in found))
    console.print(Text(f"{number_of(len(found), 'study', 'studies')}, {total}; `tiebreak prune DIR` makes room"))


def to_json(found: Sequence[StudyFolder]) -> str:
    """The same for programs."""
    rows = [
        {
            "folder": str(each.path),
            "study": each.study,
            "question": each.question,
            "answer": each.verdict.answer if each.verdict is not None else None,
            "verdict": each.verdict.primary.verdict if each.verdict is not None else None,
            "problem": each.problem or None,
            "planned": each.planned,
            "ended": each.ended,
            "bytes": each.size,
            "changed": each.changed.isoformat(timespec="seconds"),
        }
        for each in found
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _answer(each: StudyFolder) -> str:
    if each.problem:
        return f"cannot be read: {each.problem}"
    if each.verdict is not None:
        return each.verdict.answer
    return "no answer of the present runs: a study runs here or was stopped; the same `tiebreak run` continues it"


def _date(each: StudyFolder) -> str:
    return f"{each.changed:%Y-%m-%d %H:%M}"

"""`tiebreak claims --run quick`: the small version of every study that decides a claim and has no result yet."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from tiebreak.cli.output import print_error
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.schema import Study

if TYPE_CHECKING:
    from tiebreak.verdict.study_folders import StudyFolder


def missing_studies(folder: Path) -> list[tuple[Study, Path]]:
    """The small versions of the ledger's studies without a finished result in `folder`, each with its results folder.

    A study that was begun as its small version goes on in its own folder. Where a folder of that name holds something
    else, such as the full study half done, the small version gets a folder beside it.
    """
    from tiebreak.theory.claims import LEDGER
    from tiebreak.verdict.study_folders import find_studies

    there = find_studies(folder) if folder.is_dir() else []
    finished = {each.study for each in there if each.ended == each.planned and _is_the_ledgers(each)}
    names = dict.fromkeys(entry.study for entry in LEDGER if entry.study is not None)
    found = []
    for name in names:
        if name not in finished:
            study = Study.load(name).quickened()
            found.append((study, _place(study, folder)))
    return found


def _is_the_ledgers(found: StudyFolder) -> bool:
    """Whether it has a verdict on a comparison of the built-in study: another study may have the same name."""
    if found.verdict is None or found.study not in parsing.builtin_names():
        return False
    asked = {item.name for item in Study.load(found.study).comparisons}
    return any(item.group in asked for item in found.verdict.comparisons)


def _place(study: Study, folder: Path) -> Path:
    from tiebreak.results.stored_study import stored_study

    own = folder / study.name
    return own if not own.exists() or stored_study(own) == study else folder / f"{study.name}-quick"


def run_quick(folder: Path, console: Console, studies: Iterable[tuple[Study, Path]] | None = None) -> int:
    """Run what is missing, one study after the other, with one progress display; how many could not be run."""
    from tiebreak import api
    from tiebreak.cli.progress import ProgressListener
    from tiebreak.drive.messages import Note

    failed = 0
    try:
        todo = missing_studies(folder) if studies is None else list(studies)
        with ProgressListener(console) as progress:
            for place, (study, path) in enumerate(todo, start=1):
                progress.on_message(Note(text=f"study {place} of {len(todo)}: {study.name}, {study.data} -> {path}"))
                try:
                    answer = api.run(study, path, listen=progress.on_message).verdict.answer
                except TiebreakError as error:
                    failed += 1
                    print_error(error)
                else:
                    progress.on_message(Note(text=answer))
    except KeyboardInterrupt:
        sys.stderr.write("\n")  # after the ^C of the terminal
        print_error("stopped; the same command continues where it was")
        raise typer.Exit(130) from None
    return failed

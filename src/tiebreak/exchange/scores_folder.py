"""The folder that `tiebreak compare --out` writes, and `tiebreak export` reads: scores.csv, verdict.json, report."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.exchange.delimited import read_csv
from tiebreak.exchange.pick import Columns, ScoreTable, pick
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.report.page.score_page import write_score_report
from tiebreak.results.folder import SCORES_FILE
from tiebreak.verdict.model import VERDICT_FILE, Verdict
from tiebreak.verdict.scores import Scores


def check_place(folder: Path) -> None:
    """Refuse a place where the folder cannot be, and the results folder of a study: it is never overwritten."""
    try:
        there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
        is_folder, has_plan = there.is_dir(), (folder / PLAN_FILE).exists()
    except OSError as error:
        raise files.failure(folder, "cannot be written", error) from None
    if not is_folder:
        raise TiebreakError(f"--out {folder}: {there.name} is a file; give a folder")
    if has_plan:
        raise TiebreakError(f"--out {folder}: holds the results of a study; give another folder")


def write_scores_folder(folder: Path, verdict: Verdict, found: ScoreTable) -> Path:
    """Write the folder; the path of the page."""
    check_place(folder)
    files.write(folder / SCORES_FILE, scores_csv(found.sets))
    files.write(folder / VERDICT_FILE, verdict.to_json())
    return write_score_report(folder, verdict, found.sets)


def scores_csv(sets: Mapping[str, Scores]) -> str:
    """Every score in the long form that `tiebreak compare` reads."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    several = any(sets)
    writer.writerow([*(["dataset"] if several else []), "arm", "seed", "score"])
    for name, scores in sets.items():
        for arm, own in scores.items():
            writer.writerows([*([name] if several else []), arm, seed, repr(score)] for seed, score in own.items())
    return buffer.getvalue()


def is_scores_folder(folder: Path) -> bool:
    """Whether `tiebreak compare --out` wrote the folder."""
    return (folder / SCORES_FILE).is_file() and (folder / VERDICT_FILE).is_file() and not (folder / PLAN_FILE).exists()


def read_scores_folder(folder: Path) -> tuple[Verdict, dict[str, dict[str, dict[int | str, float]]]]:
    """The verdict and the scores of such a folder."""
    return Verdict.read(folder), pick(read_csv(files.inside(folder, SCORES_FILE)), Columns()).sets

"""Where the numbers came from, and what to type to repeat or extend them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tiebreak.report import words
from tiebreak.results.verdict import ComparisonResult, Verdict
from tiebreak.runs import DataSummary


def data_rows(data: DataSummary) -> list[tuple[str, str]]:
    """Where the data came from, and whether it is what was published."""
    official = {
        True: "matches the published checksum",
        False: "differs from the published checksum",
        None: "no published checksum to compare with",
    }
    sizes = ", ".join(f"{name} {words.count(size)}" for name, size in data.sizes.items())
    return [
        ("data", data.name),
        ("examples", sizes or "unknown"),
        ("checksum", f"{data.checksum} ({official[data.official]})"),
        ("licence", data.licence or "unknown"),
        ("citation", data.citation or "none given"),
    ]


def commands(verdict: Verdict, folder: str = ".") -> list[tuple[str, str]]:
    """What to type to repeat, to extend and to verify the study; `study.toml` lies in the results folder."""
    study, folder = shlex.quote(str(Path(folder) / "study.toml")), shlex.quote(folder)
    rows = [("repeat it elsewhere", f"tiebreak run {study} --out again")]
    if verdict.primary.seeds_needed:
        rows.append(("add the seeds still needed", f"tiebreak run {study} --out {folder} --seeds {wanted_seeds(verdict)}"))
    elif verdict.finished < verdict.planned:
        rows.append(("train what is missing", f"tiebreak run {study} --out {folder}"))
    return [*rows, ("verify every hash", f"tiebreak check {folder}")]


def wanted_seeds(verdict: Verdict, of: Sequence[ComparisonResult] | None = None) -> int:
    """The number of seeds to ask for, so that every comparison (or those given) gets the seeds it still needs."""
    planned = max((item.seeds + item.failed + item.missing for item in verdict.designs), default=0)
    failed = max((item.failed for item in verdict.designs), default=0)
    chosen = [verdict.primary] if of is None else of
    return max([planned, *(item.seeds + failed + (item.seeds_needed or 0) for item in chosen)])

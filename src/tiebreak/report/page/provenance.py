"""Where the numbers came from, and what to type to repeat or extend them."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tiebreak.plan.runs import DataSummary, Plan, cohort_names, cohorts
from tiebreak.report import formatting
from tiebreak.text import number_of
from tiebreak.verdict.model import ComparisonResult, Verdict

if TYPE_CHECKING:
    from tiebreak.results.record import Choice, Records, RunRecord

SPEED = ("strategy", "runs", "ms_per_step")  # of a run's provenance: reported by cohort, not by value


def data_rows(data: DataSummary) -> list[tuple[str, str]]:
    """Where the data came from, and whether it is what was published."""
    official = {
        True: "matches the published checksum",
        False: "differs from the published checksum",
        None: "no published checksum to compare with",
    }
    sizes = ", ".join(f"{name} {formatting.count(size)}" for name, size in data.sizes.items())
    return [
        ("data", f"{data.name}{', synthetic speech' if data.synthetic else ''}"),
        ("examples", sizes or "unknown"),
        ("checksum", f"{data.checksum} ({official[data.official]})"),
        ("licence", data.licence or "unknown"),
        ("citation", data.citation or "none given"),
    ]


def training_rows(plan: Plan, records: Records) -> list[tuple[str, str]]:
    """How the runs of each cohort were trained and how fast, or will be; nothing where nothing is known."""
    groups = cohorts(plan.runs.values())
    rows = []
    for key, name in cohort_names(groups).items():
        ended = [records.runs[run.identity] for run in groups[key] if run.identity in records.runs]
        ways: dict[tuple[str, str], list[RunRecord]] = {}
        for record in ended:
            if all(name in record.provenance for name in SPEED):
                ways.setdefault((record.provenance["strategy"], record.provenance["device"]), []).append(record)
        texts = [
            (f"{number_of(len(some), 'run')} " if len(ways) > 1 else "")
            + _trained(strategy, some, records.choices.get((key, device)))
            for (strategy, device), some in ways.items()
        ]
        if not ways:
            texts = [_measured(choice) for (cohort, _), choice in records.choices.items() if cohort == key]
        if texts:
            rows.append((name, "; ".join(texts)))
    return rows


def _trained(strategy: str, records: list[RunRecord], choice: Choice | None) -> str:
    """One way in which runs of a cohort were trained, with what was measured of the other."""
    at_once = Counter(int(record.provenance["runs"]) for record in records)
    speed = median(float(record.provenance["ms_per_step"]) / int(record.provenance["runs"]) for record in records)
    if strategy == "fused":
        low, high = min(at_once), max(at_once)
        some = number_of(high, "run") if low == high else f"{low} to {high} runs"
        other = f"; in a loop, timed alone, {choice.loop_ms:.2g} ms" if choice is not None else ""
        return f"fused, {some} at once, {speed:.2g} ms a step and run{other}"
    if choice is not None and choice.reason:
        other = f"; cannot be fused: {choice.reason}"
    else:
        other = f"; fused {choice.fused_ms:.2g} ms" if choice is not None and choice.fused_ms else ""
    return f"one after the other, {speed:.2g} ms a step{other}"


def _measured(choice: Choice) -> str:
    """What was measured before the first run of a cohort ended."""
    if choice.fused_ms is None:
        return f"one after the other{f': cannot be fused: {choice.reason}' if choice.reason else ''}"
    how = "fused" if choice.strategy == "fused" else "one after the other"
    return f"{how} (timed: fused {choice.fused_ms:.2g} ms a step and run, in a loop {choice.loop_ms:.2g} ms)"


def commands(verdict: Verdict) -> list[tuple[str, str]]:
    """What to type in the results folder, where `study.toml` lies, to repeat, to extend and to verify the study."""
    here = Path()
    rows = [("repeat it elsewhere", "tiebreak run study.toml --out again")]
    unsettled = undecided_primary(verdict)
    if unsettled is not None:
        rows.append(("add the seeds still needed", run_command(verdict.study, here, seeds_to_run(verdict, unsettled))))
    elif verdict.finished < verdict.planned:
        rows.append(("train what is missing", run_command(verdict.study, here)))
    return [*rows, ("verify every hash", "tiebreak check .")]


def undecided_primary(verdict: Verdict) -> ComparisonResult | None:
    """The primary comparison that needs most seeds while it is undecided; other comparisons state their own need."""
    undecided = [item for item in verdict.comparisons if item.primary and item.seeds_needed]
    return max(undecided, key=lambda item: item.seeds_needed or 0, default=None)


def run_command(study: str, folder: Path | None, seeds: int | None = None) -> str:
    """The command that goes on with the study of a results folder, or runs a built-in one without such a folder."""
    parts = ["tiebreak", "run", study if folder is None else str(folder / "study.toml")]
    parts += [] if folder is None else ["--out", str(folder)]
    return shlex.join([*parts, *([] if seeds is None else ["--seeds", str(seeds)])])


def seeds_to_run(verdict: Verdict, item: ComparisonResult) -> int:
    """The number of seeds to ask for: those planned, or those there and still needed if that is more."""
    return max(verdict.seeds, item.seeds + (item.seeds_needed or 0))

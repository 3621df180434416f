"""Where the numbers came from, and what to type to repeat or extend them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from tiebreak.plan.runs import RAN_CODE, DataSummary, Plan
from tiebreak.report import formatting
from tiebreak.study import registry
from tiebreak.study.schema import MOST_SEEDS, SEEDS_LIMIT, Study
from tiebreak.verdict.grid_edges import wider_grid
from tiebreak.verdict.model import ComparisonResult, Verdict
from tiebreak.verdict.sentences import TELLING_SEEDS
from tiebreak.verdict.statistics import least_seeds


def data_rows(data: DataSummary) -> list[tuple[str, str]]:
    """Where the data came from, and whether it is what was published."""
    official = {
        True: "matches the published checksum",
        False: "differs from the published checksum",
        None: "no published checksum to compare with",
    }
    sizes = ", ".join(f"{name} {formatting.count(size)}" for name, size in (data.held or data.sizes).items())
    return [
        ("data", f"{data.name}{', synthetic speech' if data.synthetic else ''}"),
        (data.unit, sizes or "unknown"),
        ("checksum", f"{data.checksum} ({official[data.official]})" if data.checksum else "not known to Tiebreak"),
        ("licence", data.licence or "unknown"),
        ("citation", data.citation or "none given"),
    ]


def code_rows(study: Study) -> list[tuple[str, str]]:
    """That a user's own code was run, in one line."""
    if study.designs_from is None:
        return []
    return [
        ("designs", f"from {Path(study.designs_from).name}, the user's own code; a copy lies in the results folder")
    ]


def shared_warnings(verdict: Verdict, plan: Plan) -> list[str]:
    """The warnings that a reader of the report needs: not that code was run, which the provenance says."""
    every = dict.fromkeys((*verdict.warnings, *plan.warnings))
    return [warning for warning in every if not warning.endswith(RAN_CODE)]


def without_paths(text: str, study: Study, escape: Callable[[str], str]) -> str:
    """A document without the absolute paths of the study's data and designs: their names say enough to others."""
    for path in (study.data if registry.is_path(study.data) else "", study.designs_from or ""):
        if Path(path).is_absolute():
            text = text.replace(escape(path), escape(Path(path).name))
    return text


def commands(verdict: Verdict) -> list[tuple[str, str]]:
    """What to type in the results folder, where `study.toml` lies, to repeat, to extend and to verify the study."""
    here = Path()
    rows = [("repeat it elsewhere", "tiebreak run study.toml --out again")]
    if (step := next_step(verdict, here)) is not None:
        rows.append(step)
    elif verdict.finished < verdict.planned:
        rows.append(("train what is missing", run_command(verdict.study, here)))
    if grid := wider_grid(verdict.designs):
        rows.append(("widen the grid; trained runs are kept", run_command(verdict.study, here, grid=grid)))
    return [*rows, ("verify every hash", "tiebreak check .")]


def next_step(verdict: Verdict, folder: Path | None) -> tuple[str, str] | None:
    """What would settle the question and its command, where it is undecided and more seeds would do."""
    item, stopping = undecided(verdict), verdict.stopping
    if item is None:
        return None
    seeds, study = seeds_to_run(verdict, item), verdict.study
    if verdict.finished < verdict.planned and (stopping is not None or seeds == verdict.seeds):
        return "train what is missing", run_command(study, folder)
    if stopping is not None and stopping.next is not None:
        return "go on to the next look", run_command(study, folder)
    if seeds > SEEDS_LIMIT:
        return None
    if stopping is not None:
        return "go on with a larger cap, counted as further looks", run_command(study, folder, max_seeds=seeds)
    if item.seeds < TELLING_SEEDS:  # how many would decide cannot be told
        cap = seeds if seeds > MOST_SEEDS else None
        return "add seeds until it is decided", run_command(study, folder, until_decided=True, max_seeds=cap)
    # One further look: with several, each spends half of the error that is left, and so many seeds decide less often.
    counted = ", counted as a further look" if verdict.seeds >= least_seeds(len(verdict.comparisons)) else ""
    return f"add seeds{counted}", run_command(study, folder, seeds=seeds)


def undecided(verdict: Verdict) -> ComparisonResult | None:
    """Of the comparisons that have to be decided, the one that needs most seeds; the others state their own need."""
    every = verdict.stopping is not None and verdict.stopping.comparisons == "all"
    found = [item for item in verdict.comparisons if (item.primary or every) and item.seeds_needed]
    return max(found, key=lambda item: item.seeds_needed or 0, default=None)


def run_command(
    study: str,
    folder: Path | None,
    grid: Mapping[str, tuple[float, ...]] | None = None,
    *,
    seeds: int | None = None,
    until_decided: bool = False,
    max_seeds: int | None = None,
) -> str:
    """The command that goes on with the study of a results folder, or runs a built-in one without such a folder."""
    parts = ["tiebreak", "run", study if folder is None else str(folder / "study.toml")]
    parts += [] if folder is None else ["--out", str(folder)]
    parts += [] if seeds is None else ["--seeds", str(seeds)]
    parts += ["--until-decided"] if until_decided else []
    parts += [] if max_seeds is None else ["--max-seeds", str(max_seeds)]
    for name, values in (grid or {}).items():
        parts += ["--grid", f"{name}={','.join(f'{value:g}' for value in values)}"]
    return shlex.join(parts)


def seeds_to_run(verdict: Verdict, item: ComparisonResult) -> int:
    """The number of seeds to ask for: those still needed on top of those there, and never fewer than planned.

    Where all planned runs have ended, they come on top of those planned, of which some diverged or failed.
    """
    there = verdict.seeds if verdict.finished == verdict.planned else item.seeds
    return max(verdict.seeds, there + (item.seeds_needed or 0))

"""What the page shows of a study at one moment, as plain values for JSON: small, however large the study is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from tiebreak.plan.runs import Plan
from tiebreak.report import formatting
from tiebreak.results.live_progress import LiveProgress
from tiebreak.results.record import Records
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.text import one_line
from tiebreak.verdict.model import ComparisonResult
from tiebreak.watch.curve_bands import curves_of
from tiebreak.watch.run_counts import MOST_TROUBLES, Groups, count_cohorts, progress_of, shown_cohorts, troubles_of
from tiebreak.watch.verdict_so_far import SoFar, tally_of

State = Literal["reading", "running", "ended", "interrupted", "empty", "unreadable"]
SUMMARY = ("id", "name", "question", "folder", "state", "verdict", "final", "progress", "problem", "updated")
MOST_MACHINES = 200
MOST_TEXT = 2_000  # characters of a text that a study gives itself
NO_PROGRESS = {"runs_done": 0, "runs": 0, "epochs_done": 0, "epochs": 0, "seconds_left": None, "rate": None}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of a folder at one moment."""

    study: Study
    plan: Plan
    groups: Groups
    records: Records
    so_far: SoFar
    live: LiveProgress | None  # None: no run is at work
    report: bool  # whether there is one, as it was written


def snapshot_without_records(
    identity: str, folder: str, state: State, problem: str | None, name: str = "", question: str = ""
) -> dict[str, Any]:
    """The snapshot of a folder that holds nothing yet, or nothing that can be read."""
    return {
        "id": identity,
        "name": name,
        "question": question,
        "folder": folder,
        "state": state,
        "problem": problem,
        "verdict": None,
        "final": False,
        "until_decided": False,
        "updated": None,
        "progress": NO_PROGRESS,
        "doing": None,
        "cohorts": [],
        "comparisons": [],
        "comparisons_count": 0,
        "arms": [],
        "curves": [],
        "troubles": [],
        "troubles_count": 0,
        "machines": [],
        "warnings": [],
        "report": None,
    }


def snapshot_of(reading: Reading, identity: str, folder: str, updated: float) -> dict[str, Any]:
    """The snapshot of a study."""
    study, plan, records = reading.study, reading.plan, reading.records
    counts = count_cohorts(reading.groups, records, reading.live)
    progress, troubles = progress_of(counts, reading.live), troubles_of(plan, records)
    so_far = reading.so_far
    complete = progress["runs_done"] == progress["runs"]
    state: State = "running" if reading.live is not None else "ended" if complete else "interrupted"
    stopping = so_far.verdict.stopping
    machines = reading.live.machines[:MOST_MACHINES] if reading.live is not None else ()
    final = state == "ended" and (stopping is None or stopping.next is None)
    return (
        snapshot_without_records(
            identity, folder, state, None, one_line(study.name), one_line(study.question, MOST_TEXT)
        )
        | {
            "verdict": so_far.sentence,
            "final": final,
            "until_decided": study.until_decided is not None,
            "updated": datetime.fromtimestamp(updated, UTC).isoformat(timespec="seconds"),
            "progress": progress,
            "doing": reading.live.doing or None if reading.live is not None else None,
            "cohorts": shown_cohorts(counts),
            "comparisons": _comparisons(study, so_far),
            "comparisons_count": len(so_far.verdict.comparisons),
            "arms": [arm.name for arm in study.arms],  # their places decide their colours
            "curves": curves_of(tally_of(study, plan, records, so_far.verdict)),
            "troubles": troubles[:MOST_TROUBLES],
            "troubles_count": len(troubles),
            "machines": [machine.model_dump() for machine in machines],
            "warnings": [one_line(line) for line in so_far.verdict.warnings[:MOST_TROUBLES]],
            "report": f"/study/{identity}/report/" if final and reading.report else None,
        }
    )


def _comparisons(study: Study, so_far: SoFar) -> list[dict[str, Any]]:
    hidden = study.until_decided is not None and not so_far.at_look  # not looked at yet: nothing may be said
    found = zip(so_far.verdict.comparisons, so_far.paths, strict=False)
    return [_comparison(study, item, path, hidden) for item, path in found]


def _comparison(study: Study, item: ComparisonResult, path: Sequence[Any], hidden: bool) -> dict[str, Any]:
    known: dict[str, Any] = {"difference": item.difference, "low": item.low, "high": item.high, "n": item.seeds}
    known |= {"outcome": item.verdict, "words": formatting.outcome(item), "sentence": item.sentence}
    nothing: dict[str, Any] = dict.fromkeys(("difference", "low", "high")) | {"n": 0, "sentence": ""}
    nothing |= dict.fromkeys(("outcome", "words"), "undecided")
    found: dict[str, Any] = _plain(
        {
            "label": item.name,
            "kind": item.kind,
            "primary": item.primary,
            "a": item.side_names[0],
            "b": item.side_names[1],
            "metric": item.metric,
            "goal": study.goal(item.metric),
            "unit": registry.metric_label(item.metric),
            "margin": item.margin,
            **(nothing if hidden else known),
            "path": list(path),
        }
    )
    return found


def _plain(value: Any) -> Any:
    """Numbers with six digits; those that JSON does not have become null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value

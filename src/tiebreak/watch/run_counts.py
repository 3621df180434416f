"""How far a study is: runs and epochs, in all and by cohort, and the runs that went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tiebreak.plan.runs import Plan, Run, cohort_names, cohorts
from tiebreak.results.live_progress import LiveProgress
from tiebreak.results.record import Records
from tiebreak.study.program_keys import PROGRAM
from tiebreak.text import one_line

MOST_COHORTS = 200
MOST_TROUBLES = 100
MOST_REASON = 500  # characters

Groups = dict[str, list[tuple[str, Run]]]  # name of a cohort -> identity and run


def cohort_runs(plan: Plan) -> Groups:
    """The plan's runs by the name of their cohort; computed once for a plan."""
    identities = {id(run): identity for identity, run in plan.runs.items()}  # computing them again takes long
    groups = cohorts(plan.runs.values())
    names = cohort_names(groups)
    return {names[key]: [(identities[id(run)], run) for run in runs] for key, runs in groups.items()}


@dataclass(frozen=True, kw_only=True)
class CohortCounts:
    """How far the runs of a cohort are."""

    name: str
    runs: int
    done: int
    failed: int
    diverged: int
    epochs_done: float
    epochs: int
    seconds_left: float | None = None

    @property
    def ended(self) -> int:
        """Runs that have come to an end, whichever."""
        return self.done + self.failed + self.diverged


def count_cohorts(groups: Groups, records: Records, live: LiveProgress | None) -> list[CohortCounts]:
    """Every cohort; runs that ended count with all their epochs."""
    working = {cohort.name: cohort for cohort in live.cohorts} if live is not None else {}
    found = []
    for name, runs in groups.items():
        status, epochs_done = Counter[str](), 0.0
        for identity, run in runs:
            record = records.runs.get(identity)
            if record is not None:
                status[record.status] += 1
                epochs_done += run.epochs
            elif run.task != PROGRAM:
                epochs_done += min(len(records.epochs.get(run.trajectory, ())), run.epochs)
        total, now = sum(run.epochs for _, run in runs), working.get(name)
        if now is not None and now.epochs_left is not None and runs[0][1].task != PROGRAM:
            epochs_done = max(epochs_done, total - now.epochs_left)  # an epoch that is being tested is not stored yet
        found.append(
            CohortCounts(
                name=name,
                runs=len(runs),
                done=status["done"],
                failed=status["failed"],
                diverged=status["diverged"],
                epochs_done=round(min(epochs_done, total), 2),
                epochs=total,
                seconds_left=now.seconds_left if now is not None else None,
            )
        )
    return found


def shown_cohorts(counts: list[CohortCounts]) -> list[dict[str, Any]]:
    """As the page gets them: those beyond the most that are shown are summed up."""
    shown = [vars(each) for each in counts[:MOST_COHORTS]]
    rest = counts[MOST_COHORTS:]
    if rest:
        keys = ("runs", "done", "failed", "diverged", "epochs_done", "epochs")
        sums = {key: sum(getattr(each, key) for each in rest) for key in keys}
        shown.append({"name": f"{len(rest):,} more", **sums, "seconds_left": None})
    return shown


def progress_of(counts: list[CohortCounts], live: LiveProgress | None) -> dict[str, Any]:
    """The study as a whole."""
    return {
        "runs_done": sum(each.ended for each in counts),
        "runs": sum(each.runs for each in counts),
        "epochs_done": round(sum(each.epochs_done for each in counts), 2),
        "epochs": sum(each.epochs for each in counts),
        "seconds_left": live.seconds_left if live is not None else None,
        "rate": live.rate if live is not None else None,
    }


def troubles_of(plan: Plan, records: Records) -> list[dict[str, Any]]:
    """The planned runs that diverged or failed, and why."""
    return [
        {
            "run": run.label,
            "status": record.status,
            "epoch": record.epoch,
            "reason": one_line(record.reason or "no reason recorded", MOST_REASON),
        }
        for identity, run in plan.runs.items()
        if (record := records.runs.get(identity)) is not None and record.status != "done"
    ]

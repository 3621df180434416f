"""What a changed study, design, data set or version of Tiebreak costs in a folder with results: announced in advance.

Runs are stored by what determines their numbers, so that a change is noticed by itself; here it gets its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tiebreak.plan.differences import differences, run_facts
from tiebreak.plan.runs import Plan, PlannedArm, Run
from tiebreak.study import registry
from tiebreak.text import listed, number_of


def explain_retraining(before: Plan | None, now: Plan, stored: Collection[str], begun: Collection[str]) -> str:
    """How many runs are kept, how many are trained again and why, in one line; empty where none is trained again.

    `before` is the plan that the folder held, None where it cannot be read; `stored` are the identities of the runs
    that it has a result of, `begun` the trajectories of which it has an epoch.
    """
    if not stored:
        return ""
    kept = sum(identity in stored for identity in now.runs)
    if before is None:
        if kept or any(run.trajectory in begun for run in now.runs.values()):
            return ""
        return (
            f"none of the {number_of(len(stored), 'stored run')} belongs to this study as it is now; the plan in "
            "the folder is damaged or of another version of Tiebreak, so that what changed is not known"
        )
    reasons: dict[str, set[str]] = {}  # reason -> identities
    for arm in now.arms:
        old = next((each for each in before.arms if each.name == arm.name), None)
        for key, identity in arm.runs.items() if old is not None else ():
            other, run = old.runs.get(key) if old else None, now.runs[identity]
            if other in stored and identity not in stored and run.trajectory not in begun:
                reason = _reason(before.runs[str(other)], run, old.code if old else {}, arm)
                reasons.setdefault(reason, set()).add(identity)
    if not reasons:
        return ""
    again = "; ".join(f"{reason}: {number_of(len(some), 'run')} trained again" for reason, some in reasons.items())
    return f"{kept} of {number_of(len(now.runs), 'run')} are kept; {again}"


def _reason(before: Run, now: Run, code: Mapping[str, str], arm: PlannedArm) -> str:
    """Why a run is not the one that was trained: everything that differs."""
    found = []
    if before.comparability != now.comparability:
        found.append("this version of Tiebreak trains differently")
    elif before.source != now.source and before.design == now.design:
        found += _changed_code(code, arm, now.task) or [f"the code of {now.design} or of Tiebreak changed"]
    if before.data != now.data and not (registry.is_path(before.data) and registry.is_path(now.data)):
        found.append(f"data {now.data} instead of {before.data}")
    elif before.checksum != now.checksum:
        found.append(f"the data {now.data} changed")
    apart = differences(run_facts(before), run_facts(now))
    return listed([*found, *(each.text for each in apart)]) or "it was stored in another way"


def _changed_code(before: Mapping[str, str], arm: PlannedArm, task: str) -> list[str]:
    own = arm.design not in registry.DESIGNS
    names = {
        "design": f"the code of {arm.design} changed" if own else f"Tiebreak's code of {arm.design} changed",
        "task": "the code of your task changed" if task == registry.OWN_TASK else "Tiebreak's code of the task changed",
        "training": "Tiebreak's training code changed",
    }
    return [text for part, text in names.items() if part in before and before[part] != arm.code.get(part)]

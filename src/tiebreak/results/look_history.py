"""The looks at a study: the verdicts that were made on all of its runs. A further one is not the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.folder import read_plan
from tiebreak.results.record import LookRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.schema import Study
from tiebreak.text import listed


def looks_at(study: Study, plan: Plan, looks: Iterable[LookRecord]) -> tuple[LookRecord, ...]:
    """The stored looks at this study in the order in which they were made: those that share a run of seed 0 with it.

    A version on other data or with other epochs shares none: its looks are its own. One whose code changed shares all:
    the same seeds trained again give the same scores or nearly, so the error that was spent on them is not regained.
    """
    own = set(_names(study, plan))
    found: dict[int, LookRecord] = {}
    for look in looks:
        if own & set(look.runs):
            found.setdefault(look.seeds, look)
    return tuple(found.values())


def planned_end(study: Study, earlier: Iterable[LookRecord]) -> int:
    """The number of seeds that was planned at the first look."""
    ends = [look.end for look in earlier]
    return min(ends) if ends else study.most_seeds


def looks_kept(folder: Path, study: Study, plan: Plan) -> str:
    """That earlier looks at the study count although its runs are trained again, in words; empty without looks."""
    with closing(Store.open(folder)) as store:
        seeds = [str(look.seeds) for look in looks_at(study, plan, store.looks())]
    if not seeds:
        return ""
    looks = f"looks at {listed(seeds)} seeds still count" if len(seeds) > 1 else f"the look at {seeds[0]} still counts"
    return f"{looks}: the same seeds give nearly the same scores (another --out starts anew)"


def record_look(store: Store, study: Study, plan: Plan, least: int) -> None:
    """Store that a verdict is made on all runs of the study's seeds.

    Not of a study that is not complete, and not with fewer than the `least` seeds that can decide it: such a verdict
    is always `undecided`, so it cannot err.
    """
    earlier, runs = looks_at(study, plan, store.looks()), _names(study, plan)
    lasting = set(runs) - plan.runs.keys()  # names without code, which looks of an older version lack
    new = [replace(look, runs=runs) for look in earlier if not lasting & set(look.runs)]
    known = study.seeds < least or any(look.seeds == study.seeds for look in earlier)
    if not known and plan.runs.keys() <= store.training_state().runs.keys():
        new.append(LookRecord(runs=runs, seeds=study.seeds, end=planned_end(study, earlier)))
    if new:
        with store.transaction():
            for look in new:
                store.add_look(look)


def record_stored_look(folder: Path, least: Callable[[Study], int]) -> None:
    """The same for the study that the folder holds, before another number of seeds replaces it.

    For a folder of a version that counted no looks, and one whose command was killed before the look was stored.
    """
    if not (folder / STORE_FILE).is_file():
        return
    with closing(Store.create(folder)) as store:
        try:
            study, plan = read_plan(folder, store, identities=False)
        except TiebreakError:
            return  # no study yet, or one that cannot be read: `run` says so and writes it again
        record_look(store, study, plan, least(study))


def first_runs(study: Study, plan: Plan) -> set[str]:
    """The identities of the runs of the first seed."""
    return {plan.arm(arm.name).run(setting, 0) for arm in study.arms for setting in study.settings(arm)}


def _names(study: Study, plan: Plan) -> tuple[str, ...]:
    """The names of the runs of the first seed: with their code, and without it."""
    found = first_runs(study, plan)
    return tuple(sorted(found | {plan.runs[identity].without_code for identity in found}))

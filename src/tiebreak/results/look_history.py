"""The looks at a study: the verdicts that were made on all of its runs. A further one is not the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.folder import read_plan
from tiebreak.results.record import LookRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.schema import Study


def looks_at(study: Study, plan: Plan, looks: Iterable[LookRecord]) -> tuple[LookRecord, ...]:
    """The stored looks at this study, fewest seeds first: those that share a run of the first seed with it.

    A version on other data or with other epochs shares none: its looks are its own.
    """
    own = set(_first_runs(study, plan))
    return tuple(sorted((look for look in looks if own & set(look.runs)), key=lambda look: look.seeds))


def planned_end(study: Study, earlier: Iterable[LookRecord]) -> int:
    """The number of seeds that was planned at the first look."""
    ends = [look.end for look in earlier]
    return min(ends) if ends else study.most_seeds


def record_look(store: Store, study: Study, plan: Plan, least: int) -> None:
    """Store that a verdict is made on all runs of the study's seeds.

    Not of a study that is not complete, and not with fewer than the `least` seeds that can decide it: such a verdict
    is always `undecided`, so it cannot err.
    """
    if study.seeds < least:
        return
    earlier = looks_at(study, plan, store.looks())
    known = any(look.seeds == study.seeds for look in earlier)
    if known or not plan.runs.keys() <= store.training_state().runs.keys():
        return
    with store.transaction():
        store.add_look(LookRecord(runs=_first_runs(study, plan), seeds=study.seeds, end=planned_end(study, earlier)))


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


def _first_runs(study: Study, plan: Plan) -> tuple[str, ...]:
    found = {plan.arm(arm.name).run(setting, 0) for arm in study.arms for setting in study.settings(arm)}
    return tuple(sorted(found))

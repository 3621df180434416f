"""The looks at a study: the verdicts that were made on all of its runs. A further one is not the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.folder import read_plan
from tiebreak.results.record import LookRecord, RunRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.schema import Study
from tiebreak.text import listed


def looks_at(study: Study, plan: Plan, looks: Iterable[LookRecord]) -> tuple[LookRecord, ...]:
    """The stored looks at this study in the order in which they were made: those that share a run of seed 0 with it.

    A version on other data or with other epochs shares none: its looks are its own. One whose code changed shares all:
    the same seeds trained again give the same scores or nearly, so the error that was spent on them is not regained.
    """
    own = set(_names(study, plan))
    found: dict[tuple[object, ...], LookRecord] = {}
    for look in looks:
        if own & set(look.runs):
            found.setdefault((look.seeds, *sorted(look.pairs.items())), look)
    return tuple(found.values())


def looks_before(
    study: Study, plan: Plan, earlier: Sequence[LookRecord], ended: Mapping[str, RunRecord]
) -> tuple[LookRecord, ...]:
    """Those of the `earlier` looks that were made before the one at what is there now; all, if that is a new one.

    A look at as many seeds is not the same one where runs had failed that have scores now: they were tried again.
    """
    pairs = dict.fromkeys((item.name for item in study.comparisons), study.seeds) | _pairs(study, plan, ended)
    for place, look in enumerate(earlier):
        more = any(pairs.get(name, 0) > count for name, count in look.pairs.items())
        if look.seeds == study.seeds and not more:
            return tuple(earlier[:place])
    return tuple(earlier)


def planned_end(study: Study, earlier: Iterable[LookRecord]) -> int:
    """The number of seeds that was planned at the first look."""
    ends = [look.end for look in earlier]
    return min(ends) if ends else study.most_seeds


def looks_kept(folder: Path, study: Study, plan: Plan) -> str:
    """That earlier looks at the study count although its runs are trained again, in words; empty without looks."""
    with closing(Store.open(folder)) as store:
        seeds = list(dict.fromkeys(str(look.seeds) for look in looks_at(study, plan, store.looks())))
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
    ended = store.training_state().runs if study.seeds >= least else {}
    if plan.runs.keys() <= ended.keys() and len(looks_before(study, plan, earlier, ended)) == len(earlier):
        pairs = {name: count for name, count in _pairs(study, plan, ended).items() if count >= least}
        new.append(LookRecord(runs=runs, seeds=study.seeds, end=planned_end(study, earlier), pairs=pairs))
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


def _pairs(study: Study, plan: Plan, ended: Mapping[str, RunRecord]) -> dict[str, int]:
    """How many seeds each comparison has at most, of those that lack some because runs failed and may be tried again.

    An arm counts at the setting with the fewest failures: which one is chosen may change.
    """
    if not any(record.status == "failed" for record in ended.values()):
        return {}
    there = {}
    for arm in study.arms:
        runs = [
            [plan.arm(arm.name).run(setting, seed) for seed in range(study.seeds)] for setting in study.settings(arm)
        ]
        there[arm.name] = max(sum(not _has_failed(ended.get(name)) for name in names) for names in runs)
    found = {item.name: min(there[arm] for arm in item.arms()) for item in study.comparisons}
    return {name: count for name, count in sorted(found.items()) if count < study.seeds}


def _has_failed(record: RunRecord | None) -> bool:
    return record is not None and record.status == "failed"


def _names(study: Study, plan: Plan) -> tuple[str, ...]:
    """The names of the runs of the first seed: with their code, and without it."""
    found = first_runs(study, plan)
    return tuple(sorted(found | {plan.runs[identity].without_code for identity in found}))

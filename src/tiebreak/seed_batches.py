"""A study that takes seeds until it is decided: train a batch, look, go on or stop. The same command continues it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tiebreak.drive.messages import Note
from tiebreak.drive.runner import Listener
from tiebreak.outcome import count_look, open_result
from tiebreak.plan.resolve import comparison_count
from tiebreak.plan.runs import Plan
from tiebreak.results.look_history import first_runs, looks_at
from tiebreak.results.store import Store
from tiebreak.results.stored_study import changes, stored_study
from tiebreak.study.schema import Study
from tiebreak.verdict.sentences import stopped
from tiebreak.verdict.sequential import look_sizes
from tiebreak.verdict.statistics import least_seeds
from tiebreak.verdict.stopping import batch_sizes


def first_batch(study: Study, folder: Path) -> Study:
    """A study with `until_decided` with as many seeds as its folder holds already, or its first batch; or as it is."""
    if study.until_decided is None:
        return study
    sizes, stored = batch_sizes(study, comparison_count(study)), stored_study(folder)
    if stored is None or not _only_added(study, stored, folder) or stored.seeds > sizes[-1]:
        return _with_seeds(study, sizes[0])
    grown = bool(changes(study, folder)) and least_seeds(1) <= stored.seeds < sizes[0]
    if grown:  # further comparisons need more seeds; a look at one more is a look, too
        return _with_seeds(study, max(sizes[0], look_sizes(stored.seeds, sizes[-1])[1]))
    return _with_seeds(study, max(stored.seeds, sizes[0]))


def _only_added(study: Study, stored: Study, folder: Path) -> bool:
    """Whether a study is the stored one, but for further arms: to look at fewer seeds again would gain nothing."""
    return set(changes(study, folder)) <= {"arms", "comparisons"} and all(arm in study.arms for arm in stored.arms)


def trained_anew(study: Study, plan: Plan, folder: Path) -> Study:
    """The study with its first batch where changed code trains runs again: fewer seeds than before may decide."""
    if study.until_decided is None or not _missing(study, plan, folder):
        return study
    return _with_seeds(study, batch_sizes(study, comparison_count(study))[0])


def train_until_decided(
    study: Study,
    plan: Plan,
    folder: Path,
    listen: Listener,
    make_plan: Callable[[Study], Plan],
    train: Callable[[Study, Plan], None],
) -> tuple[Study, Plan]:
    """Train the next batch of seeds and look, until the question is decided, futile, or has all its seeds.

    `make_plan` writes the plan of the study with more seeds. Returns the study and the plan of the last look.
    """
    looks = looks_at(study, plan, open_result(folder).records.looks)
    same = _looked_at(study, plan, folder)  # with this code: else the same command would go on another way
    furthest = max((look.seeds for look in looks if same <= set(look.runs)), default=0)
    if furthest > study.seeds and not _missing(study, plan, folder):  # a look at more seeds than the plan has
        study = _with_seeds(study, furthest)
        plan = make_plan(study)
    while True:
        train(study, plan)
        count_look(folder)
        stopping = open_result(folder).verdict.stopping
        assert stopping is not None
        listen(Note(text=f"look at {study.seeds} seeds: {stopped(stopping, study.seeds)}"))
        if stopping.next is None:
            return study, plan
        study = _with_seeds(study, stopping.next)
        plan = make_plan(study)


def _looked_at(study: Study, plan: Plan, folder: Path) -> set[str]:
    """The runs of the first seed, without those of arms that were added since the last look."""
    with closing(Store.open(folder)) as store:
        seen = {name for look in store.looks() for name in look.runs}
    return {identity for identity in first_runs(study, plan) if plan.runs[identity].without_code in seen}


def _missing(study: Study, plan: Plan, folder: Path) -> set[str]:
    """Those of them that have not ended: their code was changed."""
    expected = _looked_at(study, plan, folder)
    with closing(Store.open(folder)) as store:
        return expected - store.training_state().runs.keys()


def _with_seeds(study: Study, seeds: int) -> Study:
    return study.changed(seeds=seeds, until_decided=study.until_decided)

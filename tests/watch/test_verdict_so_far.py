"""The verdict so far: equal to the verdict where it is final, at the looks alone for a study until decided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support import hand_made
from tiebreak.plan.runs import Plan
from tiebreak.results.record import LookRecord, Records
from tiebreak.study.schema import Study
from tiebreak.verdict.decide import make_verdict
from tiebreak.watch.verdict_so_far import MOST_POINTS, _sizes, verdict_so_far


def records_of(study: Study, plan: Plan, seeds: int) -> Records:
    """The first seeds of every arm, cnn-pool better by about 0.05."""
    book = hand_made.Book(plan)
    for arm in study.arms:
        for setting in study.settings(arm):
            for seed in range(seeds):
                score = 0.8 + 0.05 * (arm.name == "pool") + 0.001 * (seed * 7 % 5) * (1 + (arm.name == "pool"))
                book.done(arm.name, setting, seed, val=score, test=score, losses=[0.5, 0.4])
    return Records(epochs=book.epochs, runs=book.runs, finals=book.finals)


def test_a_path_has_an_interval_for_every_number_of_seeds_and_ends_at_the_verdict() -> None:
    study = hand_made.study(seeds=8)
    plan = hand_made.plan(study)
    found = verdict_so_far(study, plan, records_of(study, plan, 8))
    (path,), verdict = found.paths, make_verdict(study, plan, records_of(study, plan, 8))
    assert [point["n"] for point in path] == list(range(2, 9))
    primary = verdict.primary
    assert path[-1] == {"n": 8, "difference": primary.difference, "low": primary.low, "high": primary.high}
    assert path[-1]["high"] - path[-1]["low"] < path[1]["high"] - path[1]["low"]
    assert found.sentence == verdict.answer


def test_before_the_end_the_sentence_says_that_it_is_not_final() -> None:
    study = hand_made.study(seeds=8)
    plan = hand_made.plan(study)
    found = verdict_so_far(study, plan, records_of(study, plan, 3))
    assert found.sentence is not None
    assert "Not final: 3 of the 8" in found.sentence
    assert [point["n"] for point in found.paths[0]] == [2, 3]


def test_without_a_finished_pair_there_is_no_verdict() -> None:
    study = hand_made.study(seeds=8)
    plan = hand_made.plan(study)
    found = verdict_so_far(study, plan, records_of(study, plan, 0))
    assert (found.sentence, found.paths) == (None, [[]])


def test_a_path_has_few_points_however_many_seeds_there_are() -> None:
    for most in (0, 1, 2, 61, 62, 1_000):
        sizes = _sizes(most)
        assert len(sizes) <= MOST_POINTS + 1
        assert sizes[-1:] == ([most] if most > 1 else [])
        assert all(size > 1 for size in sizes)


@pytest.mark.parametrize(("looked", "seeds"), [((), 9), ((9,), 14), ((9, 14), 21)])
def test_until_decided_only_what_the_looks_saw_is_shown(looked: tuple[int, ...], seeds: int) -> None:
    """Three seeds more than the last look are there; nothing is said of them."""
    study = hand_made.study(seeds=seeds, until_decided={"max_seeds": 60})
    plan = hand_made.plan(study)
    runs = tuple(plan.arm(arm.name).run(setting, 0) for arm in study.arms for setting in study.settings(arm))
    looks = tuple(LookRecord(runs=runs, seeds=each, end=60) for each in looked)
    records = replace(records_of(study, plan, (looked or (0,))[-1] + 3), looks=looks)
    found = verdict_so_far(study, plan, records)
    assert [point["n"] for point in found.paths[0]] == list(looked)
    assert found.at_look == bool(looked)
    assert found.sentence is not None
    assert f"{seeds} seeds" in found.sentence
    if looked:
        assert found.verdict.primary.seeds == looked[-1]


def test_until_decided_the_last_look_is_the_verdict() -> None:
    study = hand_made.study(seeds=9, until_decided={"max_seeds": 60})
    plan = hand_made.plan(study)
    records = records_of(study, plan, 9)
    found = verdict_so_far(study, plan, records)
    assert found.verdict == make_verdict(study, plan, records)
    assert found.sentence == found.verdict.answer
    assert found.verdict.stopping is not None
    assert found.verdict.stopping.reason == "decided"

"""Looks as the verdict uses them, and why a study that takes seeds until it is decided goes on or stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import hand_made
from tiebreak.errors import TiebreakError
from tiebreak.results.look_history import looks_at
from tiebreak.results.record import LookRecord, Records
from tiebreak.results.tally import Tally
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import Verdict
from tiebreak.verdict.sequential import Looks
from tiebreak.verdict.statistics import Sample
from tiebreak.verdict.stopping import batch_sizes, chance_to_decide, looks_of

NOISE = np.random.default_rng(5).standard_normal(60)


def finished(
    seeds: int,
    lead: float,
    spread: float,
    looks: Sequence[int] = (),
    end: int = 60,
    ended: int | None = None,
    **more: Any,
) -> Tally:
    """A study whose differences have this mean and spread; `looks`: at so many seeds, stored."""
    study = hand_made.study(seeds=seeds, grid={"lr": [0.1]}, margin=0.01, **more)
    book = hand_made.Book(hand_made.plan(study))
    for seed in range(seeds if ended is None else ended):
        for arm, plus in (("pool", lead + spread * float(NOISE[seed])), ("strided", 0.0)):
            book.done(arm, {"lr": 0.1}, seed, val=0.5, test=0.5 + plus, losses=[1.0, 1.0])
    first = tuple(sorted(arm.run({"lr": 0.1}, 0) for arm in book.plan.arms))
    stored = tuple(LookRecord(runs=first, seeds=each, end=end) for each in looks)
    return Tally(study, book.plan, Records(epochs=book.epochs, runs=book.runs, finals=book.finals, looks=stored))


def verdict(tally: Tally) -> Verdict:
    return make_verdict(tally.study, tally.plan, tally.records)


UNTIL: dict[str, Any] = {"until_decided": {"max_seeds": 20}}


def test_a_plain_study_is_one_look_at_its_planned_end() -> None:
    assert looks_of(finished(10, 0.1, 0.01)) == Looks((10,), 10)
    assert looks_of(finished(1, 0.1, 0.01)) is None


def test_an_extension_is_a_second_look() -> None:
    tally = finished(34, 0.005, 0.01, looks=[10], end=10)
    assert looks_of(tally) == Looks((10, 34), 10)
    (item,) = verdict(tally).comparisons
    assert [(look.seeds, look.level < 0.05) for look in item.path] == [(10, True), (34, True)]
    assert item.path[-1].level == pytest.approx(Looks((10, 34), 10).level(0.05))
    assert (item.path[-1].low, item.path[-1].high) == (item.low, item.high)
    alone = verdict(finished(10, 0.005, 0.01)).comparisons[0]
    assert item.path[0] == alone.path[0]  # what was said then


def test_looks_at_other_runs_and_below_the_least_seeds_do_not_count() -> None:
    tally = finished(10, 0.1, 0.01, looks=[4], end=4)
    assert looks_of(tally) == Looks((10,), 10)
    other = LookRecord(runs=("another run",), seeds=6, end=6)
    assert looks_at(tally.study, tally.plan, [other]) == ()


def test_fewer_seeds_after_a_look_are_a_further_look() -> None:
    """Simulated: 14 seeds and then 8, 9, … 13 err in 5.9 % of studies where the larger look is not counted."""
    tally = finished(8, 0.02, 0.02, looks=[14], end=14)
    assert looks_of(tally) == Looks((14, 8), 14)
    found = verdict(tally)
    assert [look.seeds for look in found.primary.path] == [8]
    assert found.primary.path[0].level == pytest.approx(0.0025)
    assert any("verdict on 14 seeds" in line and "0.25 %" in line and "--seeds 14" in line for line in found.warnings)
    again = finished(8, 0.02, 0.02, looks=[8, 14], end=8)  # that look was made first: the same verdict again
    assert looks_of(again) == Looks((8,), 8)
    assert [line for line in verdict(again).warnings if "14" in line and "further" not in line] != []
    until = verdict(finished(9, 0.02, 0.05, looks=[14, 9], end=20, **UNTIL))  # killed before it went on
    assert until.stopping is not None
    assert until.stopping.reason in ("goes on", "futile")


@pytest.mark.parametrize("seeds", [1, 4])
def test_too_few_seeds_after_a_look_say_where_the_larger_one_is(seeds: int) -> None:
    (line,) = [each for each in verdict(finished(seeds, 0.1, 0.01, looks=[14], end=14)).warnings if "14" in each]
    assert "--seeds 14 rests on more" in line
    assert "further look" not in line


def test_a_verdict_after_failed_runs_were_tried_again_is_a_further_look() -> None:
    tally = finished(10, 0.02, 0.02)
    first = tuple(sorted(arm.run({"lr": 0.1}, 0) for arm in tally.plan.arms))
    (name,) = (item.name for item in tally.study.comparisons)
    before = LookRecord(runs=first, seeds=10, end=10, pairs={name: 8})
    again = replace(tally, records=replace(tally.records, looks=(before,)))
    assert looks_of(again) == Looks((10, 10), 10, (8, 10))
    found = verdict(again)
    assert [look.seeds for look in found.primary.path] == [10]
    assert found.primary.path[0].level == pytest.approx(Looks((8, 10), 8).level(0.05))
    assert any("runs had failed" in line and "further look" in line for line in found.warnings)
    stored = replace(tally, records=replace(tally.records, looks=(before, replace(before, pairs={}))))
    assert verdict(stored) == found
    removed = replace(before, pairs={"a comparison that was removed": 8})
    assert looks_of(replace(tally, records=replace(tally.records, looks=(removed,)))) == Looks((10,), 10)


def test_a_look_counts_also_where_a_comparison_was_added_since() -> None:
    """With one comparison 6 seeds could decide; that of two takes 7."""
    pair = {"a": "pool", "b": "strided", "primary": True}
    loss = {**pair, "name": "loss", "metric": "loss", "margin": 1.0, "primary": False}
    tally = finished(9, 0.005, 0.01, looks=[6], end=6, comparisons=[pair, loss])
    assert looks_of(tally) == Looks((6, 9), 6)
    assert [look.seeds for look in verdict(tally).comparisons[0].path] == [6, 9]


def test_a_study_whose_one_side_failed_stops_at_its_first_look() -> None:
    made = finished(6, 0.1, 0.01, **UNTIL)
    pool = set(made.plan.arm("pool").runs.values())
    runs = {one: replace(run, status="failed" if one in pool else "done") for one, run in made.records.runs.items()}
    finals = {one: final for one, final in made.records.finals.items() if one not in pool}
    tally = Tally(made.study, made.plan, replace(made.records, runs=runs, finals=finals))
    found = verdict(tally)
    assert found.stopping is not None
    assert (found.stopping.reason, found.stopping.next, found.stopping.chance) == ("futile", None, 0.0)


@pytest.mark.parametrize(
    ("seeds", "lead", "spread", "reason", "following"),
    [
        (6, 0.1, 0.01, "decided", None),
        (6, 0.02, 0.05, "goes on", 8),
        (20, 0.02, 0.2, "most seeds", None),
        (14, 0.0, 0.5, "futile", None),
    ],
)
def test_why_a_study_stops(seeds: int, lead: float, spread: float, reason: str, following: int | None) -> None:
    found = verdict(finished(seeds, lead, spread, looks=[size for size in (6, 9, 14) if size < seeds], end=20, **UNTIL))
    assert found.stopping is not None
    assert (found.stopping.reason, found.stopping.next) == (reason, following)
    assert (found.stopping.chance is not None) == (reason in ("goes on", "futile"))
    if reason == "most seeds":
        assert f"--max-seeds {seeds + (found.primary.seeds_needed or 0)}." in found.answer
    else:  # the futile one needs more seeds than a study can have
        assert "--max-seeds" not in found.answer
    if reason == "futile":
        assert found.stopping.chance is not None
        assert f"{100 * found.stopping.chance:.0f} %" in found.answer


def test_the_chance_is_that_of_every_comparison_where_all_are_to_be_decided() -> None:
    """Else "a is better. Stopped: the chance to decide is 3 %" contradicts itself."""
    pair = {"a": "pool", "b": "strided", "primary": True}
    loss = {**pair, "name": "loss", "metric": "loss", "margin": 1e-9, "primary": False}
    rule = {"max_seeds": 20, "comparisons": "all"}
    found = verdict(finished(7, 0.02, 0.05, end=20, comparisons=[pair, loss], until_decided=rule))
    assert "chance to decide every comparison is" in found.answer


def test_a_verdict_in_the_middle_of_a_batch_is_not_final() -> None:
    found = verdict(finished(9, 0.1, 0.01, looks=[6], end=20, ended=7, **UNTIL))
    assert found.stopping is not None
    assert (found.stopping.reason, found.stopping.next, found.stopping.looks) == ("not final", 9, (6,))
    assert "Not final" in found.answer
    assert [look.seeds for look in found.primary.path] == [6], "what is there of the batch is no look"
    undecided = verdict(finished(9, 0.02, 0.05, looks=[6], end=20, ended=7, **UNTIL))
    assert undecided.stopping is not None
    assert undecided.stopping.chance is None, "the look at 9 is still to come"


def test_a_smaller_cap_than_the_seeds_that_are_there_is_told_so() -> None:
    found = verdict(finished(9, 0.02, 0.2, looks=[6], end=20, until_decided={"max_seeds": 8}))
    assert "9 seeds are here" in found.answer
    assert "at most 8" in found.answer


def test_the_chance_to_decide() -> None:
    looks = Looks((6,), 60)

    def chance(values: Any, margin: float) -> float:
        return chance_to_decide(Sample(a=np.asarray(values), b=np.zeros(6)), margin, looks, (9, 14, 21, 32, 48, 60), 1)

    near = NOISE[:6] - NOISE[:6].mean()
    assert chance(near + 2, 0.01) > 0.9
    assert chance(near, 0.01) < chance(near + 0.5, 0.01) < chance(near + 1, 0.01)
    assert chance(near, 2.0) > 0.9  # the same within the margin
    assert chance(np.ones(6), 0.01) == 1.0


def test_a_cap_below_the_least_seeds_is_one_line() -> None:
    study = hand_made.study(until_decided={"max_seeds": 5})
    with pytest.raises(TiebreakError, match=r"max_seeds = 5.*at least 6"):
        batch_sizes(study, 1)
    assert batch_sizes(hand_made.study(until_decided={"max_seeds": 20}), 1) == (6, 8, 11, 15, 20)

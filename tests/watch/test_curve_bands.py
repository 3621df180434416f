"""Learning curves: the numbers of the report, thinned; runs that diverged are left out, runs under way are in."""

from __future__ import annotations

import math

import pytest

from support import hand_made
from tiebreak.report.evidence import Evidence
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.verdict.decide import make_verdict
from tiebreak.watch import curve_bands
from tiebreak.watch.curve_bands import MOST_POINTS, curves_of


def book_of(*, epochs: int = 4) -> tuple[hand_made.Book, Tally]:
    study = hand_made.study(seeds=4, epochs=epochs)
    plan = hand_made.plan(study)
    book = hand_made.Book(plan)
    for arm in ("pool", "strided"):
        for seed in range(3):
            losses = [math.inf if (arm, seed) == ("pool", 2) else 1 / (k + 1 + seed) for k in range(epochs)]
            book.done(arm, {"lr": 0.1}, seed, val=0.9 + 0.02 * seed, test=0.5, losses=losses)
    book.ended("strided", {"lr": 0.1}, 3, {"status": "diverged", "reason": "loss is nan"})
    under_way = plan.runs[plan.arm("pool").run({"lr": 0.1}, 3)]
    first = next(iter(book.epochs.values()))
    book.epochs[under_way.trajectory] = {epoch: first[epoch] for epoch in (1, 2)}
    records = Records(epochs=book.epochs, runs=book.runs, finals=book.finals)
    return book, Tally(study, plan, records)


def test_curves_are_those_of_the_report() -> None:
    _, tally = book_of()
    evidence = Evidence(
        study=tally.study,
        plan=tally.plan,
        records=tally.records,
        verdict=make_verdict(tally.study, tally.plan, tally.records),
    )
    found = curves_of(tally)
    assert [(curve["arm"], curve["split"], curve["metric"]) for curve in found] == [
        (arm, split, metric)
        for arm in ("pool", "strided")
        for split, metric in (("val", "accuracy"), ("train", "loss"))
    ]
    for curve in found:
        points = evidence.curve(curve["arm"], f"{curve['split']}_{curve['metric']}")
        assert curve["epochs"] == [point.x for point in points]
        assert curve["n"] == max(point.n for point in points)
        for name in ("mean", "low", "high"):
            assert curve[name] == pytest.approx([getattr(point, name) for point in points], rel=1e-4)


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    _, tally = book_of(epochs=1_000)
    for curve in curves_of(tally):
        assert len(curve["epochs"]) == len(curve["mean"]) <= MOST_POINTS
        assert (curve["epochs"][0], curve["epochs"][-1]) == (1, 1_000)


def test_there_are_few_curves_and_the_primary_arms_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_bands, "MOST_CURVES", 3)
    _, tally = book_of()
    assert [curve["arm"] for curve in curves_of(tally)] == ["pool", "pool", "strided"]

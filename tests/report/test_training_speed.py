from __future__ import annotations

import dataclasses
import re

from support import sample_report
from tiebreak.plan.runs import Plan
from tiebreak.report.page import view
from tiebreak.report.training_speed import training_rows
from tiebreak.results.record import Choice, Records, Strategy

CHOICE = Choice(
    cohort="", device="cpu", strategy="fused", threads=1, runs=30, loop_ms=0.88, fused_ms=0.42, fits=30, reason=""
)


def trained(plan: Plan, records: Records, ways: dict[str, tuple[Strategy, int, float]]) -> Records:
    """The records, as if each design had been trained this way: strategy, runs at once, ms for a step of all."""
    runs = {}
    for identity, record in records.runs.items():
        strategy, at_once, speed = ways.get(plan.runs[identity].design, ("loop", 1, 1.0))
        made = {"device": "cpu", "strategy": strategy, "runs": str(at_once), "ms_per_step": str(speed)}
        runs[identity] = dataclasses.replace(record, provenance={**record.provenance, **made})
    return dataclasses.replace(records, runs=runs)


def choose(plan: Plan, design: str, **changes: object) -> dict[tuple[str, str], Choice]:
    cohort = next(run.cohort for run in plan.runs.values() if run.design == design)
    return {(cohort, "cpu"): dataclasses.replace(CHOICE, cohort=cohort, **changes)}  # type: ignore[arg-type]


def test_a_cohort_is_told_with_its_strategy_and_speed() -> None:
    evidence = sample_report.complete()
    plan = evidence.plan
    records = trained(plan, evidence.records, {"cnn-pool": ("fused", 30, 12.6), "cnn-strided": ("loop", 1, 0.7)})
    records = dataclasses.replace(
        records, choices={**choose(plan, "cnn-pool"), **choose(plan, "cnn-strided", strategy="loop", fused_ms=0.9)}
    )
    rows = dict(training_rows(plan, records.state))
    assert re.match(r"fused, 30 runs at once, 0\.42 ms.*loop.* 0\.88 ms", rows["cnn-pool"])
    assert re.match(r"one after the other, 0\.7 ms.*fused 0\.9 ms", rows["cnn-strided"])
    assert re.match("one after the other, 1 ms", rows["cnn-pool-unpadded"])


def test_why_a_cohort_was_not_fused_is_told() -> None:
    evidence = sample_report.complete()
    choices = choose(evidence.plan, "cnn-pool", strategy="loop", fused_ms=None, reason="it draws random numbers")
    records = dataclasses.replace(trained(evidence.plan, evidence.records, {}), choices=choices)
    rows = dict(training_rows(evidence.plan, records.state))
    assert re.match("one after the other, 1 ms.*cannot be fused: it draws random numbers", rows["cnn-pool"])


def test_two_ways_in_one_cohort_are_told_apart() -> None:
    evidence = sample_report.complete()
    records = trained(evidence.plan, evidence.records, {"cnn-pool": ("fused", 15, 6.0)})
    first = next(identity for identity, run in evidence.plan.runs.items() if run.design == "cnn-pool")
    alone = {**records.runs[first].provenance, "strategy": "loop", "runs": "1", "ms_per_step": "2"}
    mixed = {**records.runs, first: dataclasses.replace(records.runs[first], provenance=alone)}
    text = dict(training_rows(evidence.plan, dataclasses.replace(records, runs=mixed).state))["cnn-pool"]
    assert "1 run one after the other, 2 ms" in text
    assert "runs fused, 15 runs at once, 0.4 ms" in text


def test_what_is_not_known_is_not_told() -> None:
    evidence = sample_report.complete()
    assert training_rows(evidence.plan, evidence.records.state) == []
    measured = dataclasses.replace(sample_report.empty().records, choices=choose(evidence.plan, "cnn-pool"))
    ((name, how),) = training_rows(evidence.plan, measured.state)
    assert name == "cnn-pool"
    assert re.match(r"fused .*0\.42 ms.* loop 0\.88 ms", how)


def test_a_report_tells_it_by_cohort_and_not_by_value() -> None:
    evidence = sample_report.complete()
    records = trained(evidence.plan, evidence.records, {"cnn-pool": ("fused", 30, 12.6)})
    shown = dict(view.content(dataclasses.replace(evidence, records=records))["versions"])
    assert shown["training of cnn-pool"].startswith("fused, 30 runs at once, 0.42 ms")
    assert not {"strategy", "runs", "ms_per_step"} & shown.keys()

from __future__ import annotations

import dataclasses

import pytest

from support import sample_report
from tiebreak.report.page import tables
from tiebreak.study import registry


def test_arms_say_how_many_runs_of_how_many() -> None:
    rows = {row.name: row for row in tables.arm_rows(sample_report.partial().verdict)}
    assert (rows["strided"].runs, rows["strided"].failed) == ("5 of 10", "2")
    assert (rows["pool"].runs, rows["pool"].failed) == ("9 of 10", "none")
    assert rows["unpadded"].flops == "unknown"


def test_arms_without_a_result_are_missing_not_zero() -> None:
    for row in tables.arm_rows(sample_report.empty().verdict):
        assert (row.mean, row.interval, row.seconds, row.runs) == ("missing", "missing", "missing", "0 of 10")


def test_settings_show_means_over_finished_runs_and_mark_the_chosen_one() -> None:
    rows = tables.setting_rows(sample_report.partial())
    assert len(rows) == 9
    found = {(row.arm, row.setting): row for row in rows}
    assert found["strided", "lr=0.1"].runs == "5 of 10"
    assert {row.setting for row in rows if row.chosen} == {"lr=0.1"}
    scores = found["pool", "lr=0.01"].scores
    assert found["pool", "lr=0.01"].mean == pytest.approx(sum(scores) / 10)
    assert not any(row.chosen for row in tables.setting_rows(sample_report.empty()))


def test_published_figures_know_their_arm_and_metric() -> None:
    rows = tables.reported_rows(sample_report.with_reported())
    strided = next(row for row in rows if row.what.startswith("strided"))
    assert (strided.index, strided.metric) == (1, "val_accuracy")
    assert {row.position for row in rows} == {"inside", "outside"}
    assert {"0.8754", "0.86"} <= {row.published for row in rows}  # as they were printed
    known = sample_report.with_reported()
    first = known.verdict.reported[0].model_copy(update={"percentile": 12.4, "below": 1, "seeds": 10})
    known = dataclasses.replace(known, verdict=known.verdict.model_copy(update={"reported": (first,)}))
    assert [row.percentile for row in tables.reported_rows(known)] == ["12th percentile; 1 of 10 runs below"]
    lost = sample_report.with_reported()
    first = lost.verdict.reported[0].model_copy(update={"mean": None, "low": None, "high": None, "inside": None})
    lost = dataclasses.replace(lost, verdict=lost.verdict.model_copy(update={"reported": (first,)}))
    assert [(row.ours, row.position) for row in tables.reported_rows(lost)] == [("missing", "too few runs")]


def test_every_arm_is_described_by_what_makes_it_different_from_the_first() -> None:
    evidence = sample_report.complete()
    found = dict(tables.arm_descriptions(evidence.study, evidence.plan))
    assert found["pool"].startswith(registry.DESIGNS["cnn-pool"].line)
    assert found["pool-moved"].startswith("as pool, but tested with disturbed=True instead of False (")
    assert found["strided"].startswith(registry.DESIGNS["cnn-strided"].line)
    old = evidence.plan.model_copy(
        update={"arms": tuple(arm.model_copy(update={"differences": None}) for arm in evidence.plan.arms)}
    )
    assert "as pool" not in dict(tables.arm_descriptions(evidence.study, old))["pool-moved"]


def test_arms_that_share_runs_are_counted_once() -> None:
    evidence = sample_report.complete()
    assert evidence.shared == {"pool-moved": "pool", "strided-moved": "strided"}
    assert evidence.arms_with_runs() == [(0, "pool"), (1, "strided"), (2, "unpadded")]
    assert {row.arm for row in tables.setting_rows(evidence)} == {"pool", "strided", "unpadded"}


def test_claims_are_told_with_as_many_decimals_as_the_tables() -> None:
    row = tables.claim_rows(sample_report.complete())[0]
    assert "+0.023, 95 % interval +0.017 to +0.029" in row.reason
    assert row.source == "reports R0 and R1"

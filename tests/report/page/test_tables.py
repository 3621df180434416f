from __future__ import annotations

import dataclasses

import pytest

from support import sample_report
from support.sample_study import sample_study
from tiebreak.report.page import provenance, tables


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
    assert {row.words for row in rows} == {"inside", "outside"}
    assert {"0.8754", "0.86"} <= {row.shown for row in rows}  # as they were published
    lost = sample_report.with_reported()
    first = lost.verdict.reported[0].model_copy(update={"mean": None, "low": None, "high": None, "inside": None})
    lost = dataclasses.replace(lost, verdict=lost.verdict.model_copy(update={"reported": (first,)}))
    assert [(row.ours, row.words) for row in tables.reported_rows(lost)] == [("missing", "too few runs")]


def test_every_run_without_a_result_is_listed_with_its_reason() -> None:
    found = {(item.arm, item.setting, item.seeds): item for item in sample_report.partial().unfinished()}
    assert found["strided", "lr=0.1", "2"].reason == "epoch 2 of 3: train_loss is nan"
    assert found["strided", "lr=0.1", "3"].status == "failed"
    assert found["strided", "lr=0.1", "7 to 9"].reason == "not started"
    assert found["unpadded", "lr=0.1", "4"].reason == "2 of 3 epochs trained"
    assert found["pool", "lr=0.1", "5"].status == "not tested"
    assert sample_report.complete().unfinished() == []
    assert len(sample_report.empty().unfinished()) == 9


def test_training_time_counts_training_only_and_shared_runs_once() -> None:
    evidence = sample_report.complete()
    epochs = [epoch for item in evidence.records.epochs.values() for epoch in item.values()]
    assert evidence.train_seconds() == pytest.approx(sum(epoch.seconds["train"] for epoch in epochs))
    assert sample_report.empty().train_seconds() == 0


def test_versions_show_every_value_that_the_runs_were_made_with() -> None:
    evidence = sample_report.complete()
    assert ("torch", "2.13.0+cpu") in evidence.versions()
    runs = dict(evidence.records.runs)
    first = next(iter(runs))
    runs[first] = dataclasses.replace(runs[first], provenance={"torch": "2.12.0"})
    changed = dataclasses.replace(evidence, records=dataclasses.replace(evidence.records, runs=runs))
    assert ("torch", "2.13.0+cpu (89 runs), 2.12.0 (1 run)") in changed.versions()


def test_curves_leave_out_what_is_no_number() -> None:
    evidence = sample_report.complete()
    identity = evidence.plan.arm("pool").run({"lr": 0.1}, 0)
    trajectory = evidence.plan.runs[identity].trajectory
    epochs = {key: dict(value) for key, value in evidence.records.epochs.items()}
    epochs[trajectory][3] = dataclasses.replace(epochs[trajectory][3], metrics={"val_accuracy": float("inf")})
    changed = dataclasses.replace(evidence, records=dataclasses.replace(evidence.records, epochs=epochs))
    assert [point.n for point in changed.curve("pool", "val_accuracy")] == [10, 10, 9]
    assert [point.n for point in changed.curve("pool", "train_loss")] == [10, 10, 9]
    assert changed.curve("nobody", "val_accuracy") == []


def test_commands_add_the_seeds_that_are_needed() -> None:
    verdict = sample_report.partial().verdict
    more = verdict.primary.model_copy(update={"seeds_needed": 14})
    verdict = verdict.model_copy(update={"comparisons": (more, *verdict.comparisons[1:])})
    assert ("add the seeds still needed", "tiebreak run study.toml --out . --seeds 18") in provenance.commands(verdict)
    kept = sample_report.complete().verdict
    assert [what for what, _ in provenance.commands(kept)] == ["repeat it elsewhere", "verify every hash"]
    lost = kept.model_copy(update={"finished": 80})
    assert ("train what is missing", "tiebreak run study.toml --out .") in provenance.commands(lost)


def test_every_arm_is_told_in_words() -> None:
    told = dict(tables.arm_lines(sample_report.complete().study))
    assert told["pool"] == "two convolutions, each followed by 2x2 max pooling"
    assert told["pool-moved"].startswith("as pool; tested with disturbed=True (mean over six")
    arms = [
        {"name": "one", "design": "mlp", "build": {"match": "cnn-pool"}, "options": {"shuffle_pixels": True}},
        {"name": "two", "design": "mlp", "build": {"match": "cnn-pool"}, "fixed": {"lr": 0.5}, "epochs_times": 3},
    ]
    study = sample_study(arms=arms, comparisons=[{"a": "one", "b": "two"}], claims=[], reported=[], grid={})
    told = dict(tables.arm_lines(study))
    assert "built with match=cnn-pool; shuffle_pixels=True (" in told["one"]
    assert told["two"] == "as one; built with match=cnn-pool; lr fixed at 0.5; trained 3 times as long"
    own = study.model_copy(update={"arms": (study.arms[0].model_copy(update={"design": "my-net", "options": {}}),)})
    assert tables.arm_lines(own)[0][1].startswith("the design my-net")


def test_arms_that_share_runs_are_counted_once() -> None:
    evidence = sample_report.complete()
    assert evidence.shared == {"pool-moved": "pool", "strided-moved": "strided"}
    assert evidence.own() == [(0, "pool"), (1, "strided"), (2, "unpadded")]
    assert {row.arm for row in tables.setting_rows(evidence)} == {"pool", "strided", "unpadded"}


def test_claims_are_told_with_as_many_decimals_as_the_tables() -> None:
    row = tables.claim_rows(sample_report.complete().verdict)[0]
    assert "accuracy +0.023, 95 % interval +0.018 to +0.028" in row.why

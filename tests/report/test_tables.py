from __future__ import annotations

import dataclasses
import doctest

import pytest
import sample_report

from tiebreak.report import provenance, tables, words
from tiebreak.results.verdict import ClaimResult


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(words).failed == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.94449, "0.944"), (12.345, "12.35"), (163.98, "164.0"), (None, "missing"), (float("nan"), "missing")],
)
def test_scores_have_three_decimals_or_fewer(value: float | None, shown: str) -> None:
    assert words.score(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0221, "+0.022"),
        (-0.0221, "-0.022"),
        (0.0004, "+0.0004"),
        (1e-6, "0.000"),
        (-24.0, "-24.00"),
        (None, "missing"),
    ],
)
def test_differences_carry_their_sign(value: float | None, shown: str) -> None:
    assert words.signed(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(59.97, "1 min 0 s"), (59.9, "59.9 s"), (3599.7, "1 h 0 min"), (200_000, "2.3 days"), (None, "missing")],
)
def test_durations_do_not_overflow_their_unit(seconds: float | None, shown: str) -> None:
    assert words.duration(seconds) == shown


def test_a_chance_is_never_certain_and_a_p_value_never_zero() -> None:
    assert [words.chance(value) for value in (1.0, 0.999, 0.5, 0.0)] == [">99 %", ">99 %", "50 %", "<1 %"]
    assert [words.p_value(value) for value in (0.0, 0.0123, None)] == ["<0.001", "0.012", "missing"]


def test_arms_say_how_many_runs_of_how_many() -> None:
    rows = {row.name: row for row in tables.arm_rows(sample_report.partial().verdict)}
    assert (rows["strided"].runs, rows["strided"].failed) == ("5 of 10", "2")
    assert (rows["pool"].runs, rows["pool"].failed) == ("9 of 10", "none")
    assert rows["unpadded"].flops == "unknown"


def test_arms_without_a_result_are_missing_not_zero() -> None:
    for row in tables.arm_rows(sample_report.empty().verdict):
        assert (row.mean, row.interval, row.seconds, row.runs) == ("missing", "missing", "missing", "0 of 10")


def test_comparisons_are_put_into_words() -> None:
    rows = tables.comparison_rows(sample_report.complete().verdict)
    assert (rows[0].outcome, rows[0].needed, rows[0].primary) == ("pool is better", "none", True)
    rows = tables.comparison_rows(sample_report.partial().verdict)
    assert (rows[0].outcome, rows[0].needed, rows[0].decided) == ("undecided", "4 more", False)


def test_seeds_needed_tells_unknown_from_hopeless() -> None:
    item = sample_report.complete().verdict.primary.model_copy(update={"verdict": "undecided", "seeds_needed": None})
    assert words.seeds_needed(item) == "no number would do"
    assert words.seeds_needed(item.model_copy(update={"difference": None})) == "not known yet"


def test_settings_show_means_over_finished_runs_and_mark_the_chosen_one() -> None:
    rows = tables.setting_rows(sample_report.partial())
    assert len(rows) == 9
    found = {(row.arm, row.setting): row for row in rows}
    assert found["strided", "lr=0.1"].runs == "5 of 10"
    assert {row.setting for row in rows if row.chosen} == {"lr=0.1"}
    scores = found["pool", "lr=0.01"].scores
    assert found["pool", "lr=0.01"].mean == pytest.approx(sum(scores) / 10)
    assert not any(row.chosen for row in tables.setting_rows(sample_report.empty()))


def test_seeds_are_all_listed_with_what_each_side_has() -> None:
    evidence = sample_report.partial()
    rows = tables.seed_rows(evidence.sides(evidence.verdict.primary), 10)
    assert len(rows) == 10
    assert (rows[2].b, rows[2].difference) == ("missing", "missing")
    assert rows[2].a != "missing"
    assert rows[0].difference.startswith("+")
    evidence = sample_report.empty()
    assert tables.seed_rows(evidence.sides(evidence.verdict.primary), 10) == []


def test_published_figures_know_their_arm_and_metric() -> None:
    rows = tables.reported_rows(sample_report.with_reported())
    strided = next(row for row in rows if row.what.startswith("strided"))
    assert (strided.index, strided.metric) == (1, "val_accuracy")
    assert {row.words for row in rows} == {"inside", "outside"}
    lost = sample_report.with_reported()
    first = lost.verdict.reported[0].model_copy(update={"mean": None, "low": None, "high": None, "inside": None})
    lost = dataclasses.replace(lost, verdict=lost.verdict.model_copy(update={"reported": (first,)}))
    assert [(row.ours, row.words) for row in tables.reported_rows(lost)] == [("missing", "too few runs")]


def test_a_hint_is_never_a_verdict() -> None:
    claim = ClaimResult(id="x", text="t", source=("R0",), verdict="hint", leans="holds", why="w")
    assert words.claim(claim) == "hint: it seems to hold"
    assert words.claim(claim.model_copy(update={"leans": None})) == "hint: no result yet"
    assert words.claim(claim.model_copy(update={"verdict": "not run here"})) == "not run here"


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

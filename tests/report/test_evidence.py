from __future__ import annotations

import dataclasses
import math

import pytest

from support import sample_report
from tiebreak.report.evidence import Evidence, Sides, point
from tiebreak.verdict import ranges
from tiebreak.verdict.statistics import LARGEST

INTERACTION = {"kind": "interaction", "name": "four", "a": "pool", "b": "strided", "c": "moved", "d": "unpadded"}
SETTING = {"kind": "setting", "name": "best", "arm": "pool", "expect": {"lr": 0.1}}


def test_the_sides_of_a_pair_are_its_arms_at_their_chosen_settings() -> None:
    evidence = sample_report.complete()
    sides = evidence.sides(evidence.verdict.primary)
    assert (sides.names, sides.places, sides.differences) == (("pool", "strided"), (0, 1), False)
    assert sides.scores[1] == evidence.scores("strided", evidence.chosen("strided"), "accuracy")
    assert sides.limits == (ranges.SHARE, ranges.SHARE)


def test_the_sides_of_an_interaction_are_two_differences() -> None:
    evidence = sample_report.with_question(INTERACTION)
    sides = evidence.sides(evidence.verdict.primary)
    assert (sides.names, len(sides.pairs)) == (("pool − strided", "moved − unpadded"), 10)
    assert sides.places == (0, 3), "the colours of pool and moved"
    assert sides.differences
    average = sum(a - b for a, b in sides.pairs.values()) / 10
    assert average == pytest.approx(evidence.verdict.primary.difference)


def test_the_sides_of_a_setting_are_one_arm_twice() -> None:
    evidence = sample_report.with_question(SETTING)
    item = evidence.verdict.comparisons[1]
    sides = evidence.sides(item)
    assert (sides.names[1], sides.places) == ("pool at lr=0.001", (0, 0))
    assert sides.scores[1] == evidence.scores("pool", {"lr": 0.001}, "accuracy")
    assert sum(a - b for a, b in sides.pairs.values()) / 10 == pytest.approx(item.difference)


def test_labels_are_never_read_back() -> None:
    """The same sides come from a comparison whose labels say something else."""
    for question in (INTERACTION, SETTING):
        evidence = sample_report.with_question(question)
        item = evidence.verdict.primary
        renamed = item.model_copy(update={"a": "x at lr=9 - y of z", "b": "w", "name": "other", "group": ""})
        assert evidence.sides(renamed).scores == evidence.sides(item).scores
        assert evidence.sides(renamed).places == evidence.sides(item).places


def test_pairs_are_the_seeds_that_both_sides_have() -> None:
    sides = Sides(names=("a", "b"), places=(0, 1), scores=({0: 0.5, 2: 0.25}, {1: 0.5, 2: 0.75}))
    assert sides.pairs == {2: (0.25, 0.75)}
    assert (sides.format_score(0.5), sides.format_score(None)) == ("0.500", "missing")
    assert dataclasses.replace(sides, differences=True).format_score(0.5) == "+0.500"


def changed_test_score(evidence: Evidence, arm: str, seed: int, score: float) -> Evidence:
    identity = evidence.plan.arm(arm).run({"lr": 0.1}, seed)
    final = evidence.records.finals[identity]["default"]
    finals = {**evidence.records.finals[identity], "default": dataclasses.replace(final, metrics={"accuracy": score})}
    records = dataclasses.replace(evidence.records, finals={**evidence.records.finals, identity: finals})
    return dataclasses.replace(evidence, records=records)


@pytest.mark.parametrize(
    ("score", "many"), [(LARGEST, 10), (-LARGEST, 10), (math.nextafter(LARGEST, math.inf), 9), (math.nan, 9)]
)
def test_a_report_leaves_out_the_scores_that_the_verdict_leaves_out(score: float, many: int) -> None:
    evidence = changed_test_score(sample_report.complete(), "pool", 3, score)
    assert len(evidence.scores("pool", {"lr": 0.1}, "accuracy")) == many
    assert len(evidence.sides(evidence.verdict.primary).pairs) == many


def test_nothing_is_known_of_what_was_not_planned() -> None:
    evidence = sample_report.complete()
    assert evidence.scores("nobody", {"lr": 0.1}, "accuracy") == {}
    assert evidence.scores("pool", {"lr": 7.0}, "accuracy") == {}
    assert evidence.scores("pool", None, "accuracy") == {}
    assert evidence.chosen("nobody") is None
    assert evidence.index("nobody") is None
    assert list(evidence.identities("nobody")) == []


def test_arms_that_share_runs_belong_to_the_one_evaluated_by_default() -> None:
    evidence = sample_report.complete()
    assert evidence.shared == {"pool-moved": "pool", "strided-moved": "strided"}
    assert evidence.arms_with_runs() == [(0, "pool"), (1, "strided"), (2, "unpadded")]
    assert evidence.primary_arms() == ["pool", "strided"]


def test_a_point_is_a_mean_with_its_interval_inside_what_can_be() -> None:
    one = point(3, [0.5])
    assert (one.x, one.mean, one.low, one.high, one.n) == (3, 0.5, 0.5, 0.5, 1)
    wide = point(0, [0.1, 0.9], ranges.SHARE)
    assert (wide.mean, wide.low, wide.high) == (0.5, 0.0, 1.0)
    assert point(0, [0.1, 0.9]).high > 1


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

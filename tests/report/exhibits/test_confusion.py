from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from support import sample_exhibits, sample_report
from support.sample_study import CONTENT, sample_study
from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import confusion
from tiebreak.verdict.decide import make_verdict


def test_shares_are_averaged_over_seeds() -> None:
    found = confusion.confusions(sample_exhibits.with_exhibits())
    assert [(item.arm, item.seeds, item.examples) for item in found] == [
        ("pool", 10, 200),
        ("strided", 10, 200),
        ("unpadded", 10, 200),
    ]
    labels = sample_exhibits.labels(10)
    given = np.stack([sample_exhibits.predictions("cnn-strided", seed, 10) for seed in range(10)])
    expected = np.mean([(each[labels == 7] == 8).mean() for each in given])
    assert found[1].shares[7, 8] == pytest.approx(expected)
    assert found[1].shares.sum(axis=1) == pytest.approx(np.ones(10))


def test_the_most_frequent_confusions_are_named_in_order() -> None:
    shares = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]])
    item = confusion.Confusion(arm="x", index=0, names=["a", "b", "c"], shares=shares, seeds=3, examples=9)
    assert item.most_frequent() == ["b classified as c (20 % of its images)", "a classified as b (10 % of its images)"]
    assert item.most_frequent(1) == ["b classified as c (20 % of its images)"]
    assert item.largest == pytest.approx(0.2)
    perfect = dataclasses.replace(item, shares=np.eye(3))
    assert (perfect.most_frequent(), perfect.largest) == ([], 0.0)


def test_a_class_without_test_images_has_an_empty_row() -> None:
    whole = sample_exhibits.with_exhibits()
    names = np.array([*sample_exhibits.DIGITS, "ten", "eleven"])
    found = confusion.confusions(sample_exhibits.changed(whole, "examples", class_names=names))[0]
    assert found.shares.shape == (12, 12)
    assert not found.shares[10:].any()


def test_labels_may_come_from_another_arm_with_the_same_split() -> None:
    evidence = sample_exhibits.shown(sample_report.complete(), without=("cnn-pool", "cnn-pool-unpadded"))
    assert [item.arm for item in confusion.confusions(evidence)] == ["pool", "strided", "unpadded"]
    none = sample_exhibits.shown(sample_report.complete(), without=tuple(sample_exhibits.SKILL))
    assert confusion.confusions(none) == []


def test_an_evaluation_of_other_images_has_no_matrix() -> None:
    arms = [item.arm for item in confusion.confusions(sample_exhibits.with_exhibits())]
    assert "pool-moved" not in arms  # six moves of every image: six times as many predictions


def test_predictions_that_are_no_class_are_left_out() -> None:
    whole = sample_exhibits.with_exhibits()
    identity = whole.plan.arm("pool").run({"lr": 0.1}, 0)
    final = whole.records.finals[identity]["default"]
    for value in (-1.0, np.nan):
        broken = dataclasses.replace(final, outcomes={"prediction": np.full(sample_exhibits.TEST, value, np.float32)})
        finals = {**whole.records.finals, identity: {"default": broken}}
        changed = dataclasses.replace(whole, records=dataclasses.replace(whole.records, finals=finals))
        assert confusion.confusions(changed)[0].seeds == 9


def test_the_arms_in_question_come_first() -> None:
    questions = [{**item, "primary": item["name"] == "pool vs unpadded"} for item in CONTENT["comparisons"]]
    study = sample_study(comparisons=questions)
    plan = sample_report.make_plan(study)
    records = sample_report.make_records(study, plan)
    asked = Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))
    found = confusion.confusions(sample_exhibits.shown(asked))
    assert [item.arm for item in found] == ["pool", "unpadded", "strided"]

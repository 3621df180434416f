from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from support import sample_exhibits, sample_report
from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import prepared
from tiebreak.verdict import statistics


def test_robustness_is_the_mean_over_seeds_of_arms_with_runs_of_their_own() -> None:
    evidence = sample_exhibits.with_exhibits()
    moves = {move.kind: move for move in prepared.robustness(evidence)}
    assert list(moves) == ["shift", "rotate", "scale"]
    assert [line.arm for line in moves["shift"].lines] == ["pool", "strided", "unpadded"]
    line = moves["scale"].lines[1]
    assert [point.x for point in line.points] == [0.6, 0.8, 1.0, 1.2, 1.4]
    stored = [sample_exhibits.robustness("cnn-strided", seed)["scale_accuracy"][0] for seed in range(10)]
    expected = statistics.estimate(stored)
    first = line.points[0]
    assert (first.mean, first.low, first.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert first.n == 10


def test_an_arm_without_exhibits_has_no_line() -> None:
    evidence = sample_exhibits.shown(sample_report.complete(), without=("cnn-pool",))
    assert [line.arm for line in prepared.robustness(evidence)[0].lines] == ["strided", "unpadded"]
    assert [item.arm for item in prepared.activations(evidence)] == ["strided", "unpadded"]


def test_the_arm_that_is_tested_as_usual_stands_for_its_runs() -> None:
    whole = sample_exhibits.with_exhibits()
    arms = (whole.study.arms[3], *whole.study.arms[:3], whole.study.arms[4])  # pool-moved first
    planned = tuple(whole.plan.arm(arm.name) for arm in arms)
    turned = dataclasses.replace(
        whole,
        study=whole.study.model_copy(update={"arms": arms}),
        plan=whole.plan.model_copy(update={"arms": planned}),
    )
    assert turned.shared["pool-moved"] == "pool"
    assert "pool-moved" not in [line.arm for line in prepared.robustness(turned)[0].lines]


def test_curves_leave_out_what_is_no_number_and_what_is_not_there() -> None:
    whole = sample_exhibits.with_exhibits()
    broken = sample_exhibits.changed(whole, "robustness", shift_accuracy=np.full(9, np.nan), scale_value=None)
    assert [move.kind for move in prepared.robustness(broken)] == ["rotate"]


def test_an_example_has_the_most_frequent_answer_of_each_arm_in_question() -> None:
    first = prepared.examples(sample_exhibits.with_exhibits())[0]
    assert (first.number, first.truth) == (7, "7")
    assert [(each.arm, each.predicted, each.times, each.seeds, each.right) for each in first.answers] == [
        ("pool", "8", 10, 10, False),
        ("strided", "8", 10, 10, False),
    ]
    second = prepared.examples(sample_exhibits.with_exhibits())[1]
    given = [sample_exhibits.predictions("cnn-strided", seed, 10)[second.number] for seed in range(10)]
    assert second.answers[1].times == max(given.count(value) for value in given)


def test_images_that_every_run_gets_right_are_not_shown() -> None:
    shown = prepared.examples(sample_exhibits.with_exhibits())
    numbers = {each.number for each in shown}
    for number in (7, *range(20, 31)):
        answers = [
            sample_exhibits.predictions(design, seed, 10)[number] == number % 10
            for design in ("cnn-pool", "cnn-strided")
            for seed in range(10)
        ]
        assert (number in numbers) == (not all(answers))


@pytest.mark.parametrize("part", ["index", "images", "test_labels", "class_names"])
def test_examples_with_a_part_missing_are_left_out(part: str) -> None:
    broken = sample_exhibits.changed(sample_exhibits.with_exhibits(), "examples", **{part: None})
    assert prepared.examples(broken) == []
    assert {row.truth for item in prepared.activations(broken) for row in item.rows} == {""}


def test_examples_that_are_not_in_the_test_split_are_left_out() -> None:
    broken = sample_exhibits.changed(sample_exhibits.with_exhibits(), "examples", index=np.array([10_000]))
    assert prepared.examples(broken) == []


def test_examples_need_the_predictions_of_the_same_split() -> None:
    other = sample_exhibits.changed(sample_exhibits.with_exhibits(), "examples", test_labels=np.arange(30) % 10)
    assert prepared.examples(other) == []
    assert prepared.examples(sample_report.complete()) == []


def test_a_class_without_a_name_is_called_by_its_number() -> None:
    few = sample_exhibits.changed(sample_exhibits.with_exhibits(), "examples", class_names=np.array(["zero"]))
    assert prepared.examples(few)[0].truth == "7"


def test_maps_belong_to_the_first_seed_and_know_their_class() -> None:
    found = prepared.activations(sample_exhibits.with_exhibits())
    assert [(item.arm, item.seed, len(item.rows)) for item in found] == [
        ("pool", 0, 3),
        ("strided", 0, 3),
        ("unpadded", 0, 3),
    ]
    assert [row.truth for row in found[0].rows] == ["7", "0", "1"]
    assert found[1].rows[0].maps.shape == (8, 14, 14)
    assert not found[0].shuffled


def test_shuffled_pixels_are_told() -> None:
    whole = sample_exhibits.with_exhibits()
    runs = {
        key: run.model_copy(update={"options": {**run.options, "shuffle_pixels": True}})
        for key, run in whole.plan.runs.items()
    }
    moved = dataclasses.replace(whole, plan=whole.plan.model_copy(update={"runs": runs}))
    assert prepared.activations(moved)[0].shuffled


@pytest.mark.parametrize("arrays", [{"maps": np.zeros((3, 8))}, {"maps": None}, {"images": np.zeros((3, 5), np.uint8)}])
def test_maps_of_another_shape_are_left_out(arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]) -> None:
    assert prepared.activations(sample_exhibits.changed(sample_exhibits.with_exhibits(), "activations", **arrays)) == []


@pytest.mark.parametrize("make", [sample_report.complete, sample_report.empty, sample_report.partial])
def test_without_exhibits_there_is_nothing(make: object) -> None:
    assert callable(make)
    evidence = make()
    assert isinstance(evidence, Evidence)
    assert prepared.robustness(evidence) == []
    assert prepared.examples(evidence) == []
    assert prepared.activations(evidence) == []


def test_of_partial_results_what_is_there_is_shown() -> None:
    evidence = sample_exhibits.shown(sample_report.partial())
    lines = {line.arm: line.points[0].n for line in prepared.robustness(evidence)[0].lines}
    assert lines == {"pool": 9, "strided": 5, "unpadded": 9}
    answers = prepared.examples(evidence)[0].answers
    assert [(each.arm, each.seeds) for each in answers] == [("pool", 9), ("strided", 5)]

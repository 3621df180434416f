from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from support import hand_made
from support.hand_made import Book
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally

HIGH, LOW = {"lr": 0.1}, {"lr": 0.01}


def tally(book: Book, **more: Any) -> Tally:
    records = Records(epochs=book.epochs, runs=book.runs, finals=book.finals)
    return Tally(hand_made.study(**more), book.plan, records)


def empty(**more: Any) -> Book:
    return Book(hand_made.plan(hand_made.study(**more)))


def full(scores: dict[float, tuple[float, float]], **more: Any) -> Book:
    """Every run of the arm `pool` done; per learning rate: validation, test."""
    book = empty(**more)
    for lr, (val, test) in scores.items():
        for seed in range(3):
            book.done("pool", {"lr": lr}, seed, val=val + 0.01 * seed, test=test, losses=[4.0, 2.0])
    return book


def test_validation_chooses_even_where_the_test_set_disagrees() -> None:
    assert tally(full({0.1: (0.6, 0.9), 0.01: (0.7, 0.1)})).chosen("pool") == LOW
    assert tally(full({0.1: (0.7, 0.1), 0.01: (0.6, 0.9)})).chosen("pool") == HIGH


def test_the_choice_does_not_change_with_the_test_set() -> None:
    book = full({0.1: (0.6, 0.5), 0.01: (0.7, 0.5)})
    book.finals.clear()
    assert tally(book).chosen("pool") == LOW


def test_less_loss_is_better() -> None:
    book = full({0.1: (0.6, 0.9), 0.01: (0.7, 0.1)}, metric="loss")
    assert tally(book, metric="loss").chosen("pool") == LOW


@pytest.mark.parametrize("status", ["failed", "diverged"])
def test_the_fewest_failures_come_first(status: str) -> None:
    book = full({0.1: (0.9, 0.9), 0.01: (0.6, 0.6)})
    book.ended("pool", HIGH, 1, {"status": status, "reason": "why"})
    found = tally(book)
    assert found.chosen("pool") == LOW
    assert found.failed("pool", HIGH) == 1
    assert found.status("pool", HIGH, 1) == status
    assert list(found.scores("pool", HIGH, "accuracy")) == [0, 2]


def test_a_setting_without_results_is_the_last_choice() -> None:
    book = full({0.01: (0.1, 0.1)})
    assert tally(book).chosen("pool") == LOW
    for seed in range(2):
        book.ended("pool", LOW, seed, {"status": "failed", "reason": "why"})
    assert tally(book).chosen("pool") == LOW
    assert tally(book).chosen("strided") == HIGH  # nothing is known: the first


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_setting_whose_validation_is_not_finite_is_not_chosen(metric: str, wrong: float) -> None:
    for first, second, expected in ((wrong, 0.2, LOW), (0.2, wrong, HIGH)):
        book = full({0.1: (first, 0.9), 0.01: (second, 0.9)}, metric=metric)
        assert tally(book, metric=metric).chosen("pool") == expected


def test_equal_settings_are_decided_by_the_order_of_the_file() -> None:
    assert tally(full({0.1: (0.5, 0.5), 0.01: (0.5, 0.5)})).chosen("pool") == HIGH


def test_scores_are_of_the_last_epoch_by_seed() -> None:
    book = full({0.1: (0.6, 0.9)})
    book.done("pool", HIGH, 2, val=0.8, test=0.7, losses=[5.0, 1.0])
    found = tally(book)
    assert found.scores("pool", HIGH, "accuracy") == {0: 0.9, 1: 0.9, 2: 0.7}
    assert found.scores("pool", HIGH, "val_accuracy") == {0: 0.6, 1: 0.61, 2: 0.8}
    assert found.scores("pool", HIGH, "train_loss") == {0: 2.0, 1: 2.0, 2: 1.0}
    assert found.scores("pool", LOW, "accuracy") == {}


def test_the_running_loss_is_the_mean_over_the_epochs() -> None:
    found = tally(full({0.1: (0.6, 0.9)}))
    assert found.scores("pool", HIGH, "train_loss_running") == {0: 3.0, 1: 3.0, 2: 3.0}


def test_epochs_of_a_longer_run_on_the_same_path_do_not_count() -> None:
    book = empty()
    book.done("pool", HIGH, 0, val=0.6, test=0.9, losses=[4.0, 2.0, 0.0])  # a third epoch from another plan
    found = tally(book)
    assert found.scores("pool", HIGH, "train_loss") == {0: 2.0}
    assert found.scores("pool", HIGH, "train_loss_running") == {0: 3.0}
    assert found.train_seconds("pool", HIGH) == 3.0


def test_a_run_that_is_not_tested_yet_has_no_test_score() -> None:
    book = full({0.1: (0.6, 0.9)})
    del book.finals[book.plan.arm("pool").run(HIGH, 1)]
    found = tally(book)
    assert list(found.scores("pool", HIGH, "accuracy")) == [0, 2]
    assert list(found.scores("pool", HIGH, "val_accuracy")) == [0, 1, 2]


def test_missing_is_a_status() -> None:
    assert tally(empty()).status("pool", HIGH, 0) == "missing"
    assert tally(empty()).failed("pool", HIGH) == 0


def test_outcomes_are_there_for_metrics_that_are_means_over_examples() -> None:
    found = tally(full({0.1: (0.6, 0.25)}))
    outcomes = found.outcomes("pool", HIGH, "accuracy")
    assert list(outcomes) == [0, 1, 2]
    np.testing.assert_array_equal(outcomes[0], np.full(4, 0.25, np.float32))
    assert found.outcomes("pool", HIGH, "loss") == {}


def test_the_training_clock_has_no_evaluation_and_no_checkpoints() -> None:
    assert tally(full({0.1: (0.6, 0.9)})).train_seconds("pool", HIGH) == 3.0  # 1 + 2
    assert tally(empty()).train_seconds("pool", HIGH) is None


def test_a_step_is_timed_alone_where_it_was_measured_on_the_device_of_the_runs() -> None:
    book = full({0.1: (0.6, 0.9)})
    found = tally(book)
    assert found.step_ms("pool", HIGH) is None
    run = book.plan.runs[found.runs("pool", HIGH)[0][1]]
    device = book.runs[run.identity].provenance.get("device", "")
    choice = dataclasses.replace(hand_made.CHOICE, cohort=run.cohort, device=device, loop_ms=2.5)
    for where, expected in ((device, 2.5), ("another", None)):
        records = Records(epochs=book.epochs, runs=book.runs, finals=book.finals, choices={(run.cohort, where): choice})
        assert Tally(found.study, book.plan, records).step_ms("pool", HIGH) == expected
    times = dataclasses.replace(hand_made.TIMES, cohort=run.cohort, device=device)
    records = dataclasses.replace(records, step_times={(run.cohort, device): times})
    assert Tally(found.study, book.plan, records).step_ms("pool", HIGH) == 1.5  # timed in turns: that counts

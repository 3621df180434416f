"""Each score against a naive twin that follows its formula word by word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tiebreak.study import registry
from tiebreak.tasks import class_scores
from tiebreak.verdict.influence import influence

Labels = NDArray[np.float32]
pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60)


def split(some: list[tuple[int, int]]) -> tuple[Labels, Labels]:
    labels, predictions = zip(*some, strict=True)
    return np.array(labels, np.float32), np.array(predictions, np.float32)


def naive_recalls(some: list[tuple[int, int]]) -> list[float]:
    classes = {label for label, _ in some}
    return [sum(label == answer == c for label, answer in some) / sum(label == c for label, _ in some) for c in classes]


@given(pairs)
def test_balanced_accuracy_is_the_mean_recall(some: list[tuple[int, int]]) -> None:
    assert class_scores.balanced_accuracy(*split(some)) == pytest.approx(np.mean(naive_recalls(some)))


@given(pairs)
def test_the_f1_of_a_class_joins_precision_and_recall(some: list[tuple[int, int]]) -> None:
    scores = []
    for c in {number for pair in some for number in pair}:
        right = sum(label == answer == c for label, answer in some)
        answers, examples = sum(answer == c for _, answer in some), sum(label == c for label, _ in some)
        precision, recall = right / max(answers, 1), right / max(examples, 1)
        scores.append(2 * precision * recall / (precision + recall) if right else 0.0)
    assert class_scores.macro_f1(*split(some)) == pytest.approx(np.mean(scores))


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=60))
def test_the_calibration_error_is_a_mean_of_gaps_over_bins(some: list[tuple[float, bool]]) -> None:
    bins: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in some:
        bins.setdefault(min(int(confidence * 15), 14), []).append((confidence, right))
    gaps = [
        len(each) / len(some) * abs(np.mean([r for _, r in each]) - np.mean([c for c, _ in each]))
        for each in bins.values()
    ]
    confidences, answers = zip(*some, strict=True)
    found = class_scores.calibration_error(np.array(confidences, np.float32), np.array(answers, np.float32))
    assert found == pytest.approx(sum(gaps), abs=1e-6)


def test_confident_and_right_is_calibrated_and_confident_and_wrong_is_not() -> None:
    sure = np.ones(4, np.float32)
    assert class_scores.calibration_error(sure, sure) == 0
    assert class_scores.calibration_error(sure, 0 * sure) == 1
    assert np.isnan(class_scores.calibration_error(np.array([np.nan, 1.0]), sure[:2]))


@given(pairs)
def test_weighted_by_class_the_accuracy_is_balanced(some: list[tuple[int, int]]) -> None:
    labels, predictions = split(some)
    weights = class_scores.class_weights(labels)
    entry = registry.TASKS["classify"].metrics["balanced_accuracy"]
    found = influence(entry, (labels == predictions).astype(np.float32), weights)
    assert weights.min() >= 1
    assert found.mean() == pytest.approx(class_scores.balanced_accuracy(labels, predictions), abs=1e-6)

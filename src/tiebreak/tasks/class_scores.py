"""Scores of classification beyond accuracy, from labels [N], predictions [N] and confidences [N] of N examples.

| score             | formula                                                                                     |
|-------------------|---------------------------------------------------------------------------------------------|
| balanced accuracy | mean over classes c with examples of recall(c) = right(c) / examples(c)                     |
| macro F1          | mean over classes that occur of 2 right(c) / (examples(c) + answers(c))                     |
| calibration error | Σ_b n_b / N · |accuracy(b) - confidence(b)| over 15 bins b of equal width (Guo et al., 2017) |

examples(c): examples whose label is c; answers(c): examples that are classified as c. The confidence of a prediction is
its probability. The definitions of macro F1 and balanced accuracy are those of scikit-learn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15

Numbers = NDArray[Any]


def balanced_accuracy(labels: Numbers, predictions: Numbers) -> float:
    """The mean recall of the classes: every class counts the same, however many examples it has."""
    examples, _, right = _counts(labels, predictions)
    there = examples > 0
    return float(np.mean(right[there] / examples[there]))


def macro_f1(labels: Numbers, predictions: Numbers) -> float:
    """The mean over classes of the harmonic mean of precision and recall."""
    examples, answers, right = _counts(labels, predictions)
    there = examples + answers > 0
    return float(np.mean(2 * right[there] / (examples + answers)[there]))


def calibration_error(confidences: Numbers, right: Numbers) -> float:
    """How far confidence and accuracy differ: 0 where 80 % of the answers given with probability 0.8 are right.

    Not a number where a confidence is none: the network has diverged.
    """
    if not np.all(np.isfinite(confidences)):
        return math.nan
    bins = np.minimum((np.asarray(confidences, np.float64) * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, np.asarray(right, np.float64) - confidences, minlength=BINS)
    return float(np.abs(gaps).sum() / len(bins))


def class_weights(labels: Numbers) -> NDArray[np.float32]:
    """A weight for each example, of at least 1: with these, accuracy becomes balanced accuracy."""
    numbers = labels.astype(np.int64)
    examples = np.bincount(numbers)
    return np.asarray(examples.max(initial=1) / examples[numbers], np.float32)


def _counts(labels: Numbers, predictions: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Examples, answers and right answers of each class [C]."""
    truth, answers = labels.astype(np.int64), predictions.astype(np.int64)
    classes = int(max(truth.max(initial=0), answers.max(initial=0))) + 1
    counted = [np.bincount(values, minlength=classes) for values in (truth, answers, truth[truth == answers])]
    return counted[0], counted[1], counted[2]
